"""Text of any kind is stored in any database."""

from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlalchemy.dialects.postgresql.base import PGDialect

from bq_harper_assets.ledger.store.columns import AnyText


@settings(deadline=None)
@given(text=st.text(st.characters()))
@example("\x00\\u0000\ud800\udc00\\")
def test_any_text_can_be_stored_in_any_database(text: str) -> None:
    dialect = PGDialect()
    stored = AnyText().process_bind_param(text, dialect)
    assert stored is not None
    assert "\x00" not in stored
    stored.encode("utf-8")
    assert AnyText().process_result_value(stored, dialect) == text
