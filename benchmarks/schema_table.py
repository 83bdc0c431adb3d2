"""The figures of schema_figures.py as docs/schema.md shows them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[1] / "docs" / "schema.md"
BEGIN = "<!-- written by: .venv/bin/python -m benchmarks.schema_figures -->"
END = "<!-- end of what it writes -->"


def table(figures: Mapping[str, Any]) -> list[str]:
    """As the page shows them."""
    race, drift, types = figures["race"], figures["drift"], figures["type_change"]
    return [
        "| what was run | counted |",
        "|---|---|",
        f"| {race['processes']} processes make one table at once, {race['times']} times, each with"
        f" columns of its own: {race['columns']} in all | {race['errors']} errors,"
        f" {race['tables_made']} table made, {race['schemas_at_the_end']} schema at the end,"
        f" {race['columns_lost']} columns lost |",
        f"| looks over a day | {drift['looks_a_day']}, one every"
        f" {drift['minutes_between_looks']:g} minutes, {drift['calls_a_look']} metadata call each"
        " for each table |",
        "| a change of an idle table directly after a look | seen"
        f" {drift['seen_at_most_min_idle']:g} minutes later |",
        f"| a change where rows are synced | seen by the next sync; a live table polls every"
        f" {types['poll_interval_s']:g} seconds |",
        f"| a type changes under {types['rows']:,} rows, half of them synced before |"
        f" {types['rows_lost']} rows lost, {types['values_lost']} values lost |",
    ]


def write_page(figures: Mapping[str, Any]) -> None:
    """The table anew."""
    before, old, after = on_page()
    assert old, f"{PAGE} has no marks"
    PAGE.write_text(f"{before}{block(figures)}{after}", encoding="utf-8")


def block(figures: Mapping[str, Any]) -> str:
    """What stands on the page, with its marks."""
    return "\n".join([BEGIN, "", *table(figures), "", END])


def on_page() -> tuple[str, str, str]:
    """The page before the marks, with and between them, and after them."""
    before, begin, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    inner, end, after = rest.partition(END)
    return before, f"{begin}{inner}{end}" if end else "", after
