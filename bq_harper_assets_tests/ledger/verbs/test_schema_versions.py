"""Every schema version says who recorded it and why; fingerprints can be told under a later one."""

from dataclasses import replace

import pytest

from bq_harper_assets.ledger.ledger import Ledger
from bq_harper_assets.ledger.records import LedgerRoute
from bq_harper_assets_tests.ledger.sample import FACTS


def test_versions_come_oldest_first_with_who_and_why(ledger: Ledger, table: LedgerRoute) -> None:
    drifted = ledger.record_schema(table, {"columns": ["ts", "a"]}, 1, "host-7", "drift")
    again = ledger.record_schema(table, {"columns": ["ts", "a"]}, 2, "host-8", "first sync")
    assert again == drifted
    back = ledger.record_schema(table, {"columns": ["ts"]}, 2, by="ann", cause="rollback of 2")
    history = ledger.schema_history(table)
    assert [(one.version, one.by, one.cause) for one in history] == [
        (1, "", ""),
        (2, "host-7", "drift"),
        (3, "ann", "rollback of 2"),
    ]
    assert history[1:] == (drifted, back)
    assert ledger.newest_schema(table) == back
    (entry,) = ledger.audit(table, 1, kind="schema")
    assert entry.detail == {"by": "ann", "cause": "rollback of 2"}


def test_the_newest_versions_of_all_tables_are_asked_for_at_once(
    ledger: Ledger, table: LedgerRoute
) -> None:
    ledger.register_route(replace(FACTS, name="never", table="never", target="Never"))
    other = ledger.register_route(replace(FACTS, name="calls", table="calls", target="Calls"))
    ledger.record_schema(other, {"columns": ["ts"]}, 0)
    second = ledger.record_schema(table, {"columns": ["ts", "a"]}, 1)
    newest = ledger.newest_versions()
    assert {name: each.version for name, each in newest.items()} == {"calls": 1, table.name: 2}
    assert newest[table.name].recorded_at == second.recorded_at


@pytest.mark.promise("F1")
def test_what_a_version_changed_and_where_it_was_seen_is_kept_with_it(
    ledger: Ledger, table: LedgerRoute
) -> None:
    changes = [{"kind": "added", "column": "a\x00", "before": "", "action": "syn\\ced"}]
    body = {"columns": ["ts", "a"]}
    made = ledger.record_schema(table, body, 1, changes=changes, source_fingerprint="f1")
    assert (made.changes, made.source_fingerprint) == (tuple(changes), "f1")
    # The same columns seen again are the version that is there, told as it was.
    again = ledger.record_schema(table, body, 2, "ann", changes=[], source_fingerprint="f2")
    assert again == made == ledger.newest_schema(table) == ledger.schema_version(table, 2)
    ledger.record_schema(table, {"columns": []}, 2, changes=())
    assert [(each.changes, each.source_fingerprint) for each in ledger.schema_history(table)] == [
        (None, None),  # recorded as earlier releases did
        (tuple(changes), "f1"),
        ((), None),
    ]


def test_a_body_that_json_cannot_hold_is_refused(ledger: Ledger, table: LedgerRoute) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        ledger.record_schema(table, {"columns": [float("nan")]}, 1)
    assert len(ledger.schema_history(table)) == 1
