"""What a user reads when the ledger refuses something."""

from datetime import UTC, datetime, timedelta

import pytest

from bq_harper_assets.ledger.errors import (
    ConservationBroken,
    Holder,
    LeaseHeld,
    LeaseLost,
    LedgerNotWritable,
    LedgerTooNew,
    LedgerUnavailable,
    PlanRefused,
    PositionsNotComparable,
    SchemaMoved,
    TableChanged,
)

NOON = datetime(2026, 1, 5, 12, 30, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def holder(slice: int = 0, owner: str | None = "ann", minutes: int = 0, **more: object) -> Holder:
    return Holder(slice=slice, owner=owner, epoch=7, until=NOON + minutes * MINUTE, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("held", "said"),
    [
        (holder(3), "slice 3: ann until 2026-01-05T12:30:00.000+00:00 (epoch 7)"),
        (holder(host="h"), "slice 0: ann until 2026-01-05T12:30:00.000+00:00 (epoch 7, on h)"),
        (holder(owner=None), "slice 0 is free (epoch 7)"),
        (Holder(slice=1, owner="ann", epoch=2, until=None), "slice 1 is free (epoch 2)"),
    ],
)
def test_a_holder_says_who_has_a_slice_and_until_when(held: Holder, said: str) -> None:
    assert str(held) == said


def test_a_lease_of_someone_else_is_waited_for_and_then_the_command_is_typed_again() -> None:
    error = LeaseHeld("ships", [holder(0), holder(1, "bob")])
    assert not error.is_own
    assert "ships is being moved by someone else: slice 0: ann until" in str(error)
    assert "; slice 1: bob until" in str(error)
    assert str(error).endswith("then type: bqh sync ships")
    assert str(LeaseHeld("ships", [holder()], "bqh repair ships")).endswith("bqh repair ships")


def test_a_lease_of_an_earlier_try_of_the_same_run_is_told_as_that() -> None:
    own = LeaseHeld("ships", [holder(0), holder(1)], asked_by="ann")
    assert own.is_own
    assert "ships is still held by an earlier try of this run: slice 0" in str(own)
    assert str(own).endswith("type then: bqh sync ships")
    assert own.what == (
        "the lease of ships, held by an earlier try of this run, which must renew it or lose it at"
        " 12:30:00 UTC"
    )
    assert not LeaseHeld("ships", [holder(0), holder(1, "bob")], asked_by="ann").is_own


def test_each_run_that_holds_slices_is_named_once() -> None:
    held = [
        holder(0, "ann", 2, since=NOON - MINUTE, host="far"),
        holder(1, "bob", 1),
        holder(2, "bob", 3),
        holder(3, None),
    ]
    error = LeaseHeld("ships", held)
    assert error.who == "run ann on far since 2026-01-05 12:29:00 UTC and run bob"
    assert error.holders == tuple(held)
    assert LeaseHeld("ships", held[:3]).what == (
        "the lease of ships, held by run ann on far, which must renew it or lose it at 12:32:00 UTC"
        " and by run bob, which must renew it or lose it at 12:33:00 UTC"
    )


def test_a_lost_lease_says_who_has_it_now() -> None:
    error = LeaseLost("ships", "commit cells", [holder(0, "bob"), holder(1, None)], NOON)
    assert "cannot commit cells for ships" in str(error)
    assert "it is 2026-01-05T12:30:00.000+00:00 in the ledger" in str(error)
    assert "Now slice 0: bob until" in str(error)
    assert "; slice 1 is free (epoch 7). Cells committed before are safe" in str(error)
    assert (error.table, [each.slice for each in error.holders]) == ("ships", [0, 1])


def test_a_ledger_of_a_newer_release_names_it_if_it_is_known() -> None:
    assert "release 1.2 or a newer one has opened it" in str(LedgerTooNew("here", "v9", "1.2"))
    assert ": a newer release has opened it" in str(LedgerTooNew("here", "v9", None))


def test_a_full_disk_is_told_apart_from_one_that_cannot_be_written() -> None:
    full = str(LedgerNotWritable("here", "no room", is_full=True))
    assert "here is on a disk that is full: no room" in full
    assert "Free some space, then" in full
    closed = str(LedgerNotWritable("here", "read-only", is_full=False))
    assert "here cannot be written: read-only" in closed
    assert "Make it writable" in closed


def test_each_error_says_of_what_it_is_and_what_to_type() -> None:
    away = LedgerUnavailable("here", "timed out")
    assert str(away).startswith("the ledger at here is not available: timed out. What it holds is")
    moved = SchemaMoved("ships", 3, 4)
    assert "recorded schema version 4 of ships" in str(moved)
    assert "columns when 3 was the newest" in str(moved)
    assert str(moved).endswith(": bqh sync ships")
    refused = PlanRefused("ships", "it has no lease")
    assert str(refused).startswith("cannot plan batches for ships: it has no lease. ")
    assert str(refused).endswith(": bqh status ships")
    unlike = PositionsNotComparable("ships", "7 of A", "9 of B")
    assert (
        "ships was last planned at the position 7 of A of its source, which is at 9 of B now"
        in (str(unlike))
    )
    assert str(unlike).endswith(": bqh reconcile ships")
    broken = ConservationBroken("ships", "08:00|s00", "9 read, 8 told")
    assert str(broken).startswith("cell 08:00|s00 of ships does not add up: 9 read, 8 told. ")
    assert (away.address, moved.newest) == ("here", 4)
    assert (unlike.table, unlike.newest, unlike.given) == ("ships", "7 of A", "9 of B")
    assert {refused.table, broken.table} == {"ships"}
    assert TableChanged.exit_code == 2
