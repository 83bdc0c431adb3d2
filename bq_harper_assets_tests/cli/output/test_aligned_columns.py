"""Text in columns."""

from bq_harper_assets.cli.output.aligned_columns import aligned


def test_a_column_is_as_wide_as_its_widest_text_and_no_line_ends_with_a_space() -> None:
    rows = [("a", "bbbb", ""), ("aaaaa", "b", "c")]
    assert list(aligned(("one", "two", "three"), rows)) == [
        "one    two   three",
        "a      bbbb",
        "aaaaa  b     c",
    ]
    assert list(aligned(("one", "two"), [])) == ["one  two"]
