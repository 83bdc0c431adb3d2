"""Changes that no test can notice, because the changed module does the same, each with its reason.

A change that is listed here and noticed all the same, or that cannot be made any more, fails
`make mutations`: the list does not outlive what it speaks of.
"""

from typing import NamedTuple


class Equivalent(NamedTuple):
    """A change after which a module does the same as before."""

    module: str
    line: str
    before: str
    after: str
    reason: str


EQUIVALENTS = (
    Equivalent(
        "stores/bigquery/errors",
        "return isinstance(error, BigQueryUnavailable) and "
        'getattr(response, "status_code", 0) == 500',
        "0",
        "1",
        "It stands for no status, and any number but 500 does.",
    ),
    Equivalent(
        "retries/breaker",
        "probing: bool = False",
        "False",
        "True",
        "Only an open breaker is asked for it, and the call that opens it sets it.",
    ),
    Equivalent(
        "retries/breaker",
        "changes: int = 0",
        "0",
        "1",
        "The number is only compared with itself at an earlier time.",
    ),
    Equivalent(
        "retries/breaker",
        "breaker.changes += 1",
        "1",
        "2",
        "The number only has to differ from all that were there before.",
    ),
    Equivalent(
        "retries/breaker",
        "breaker.changes += 1",
        "breaker.changes += 1",
        "breaker.changes -= 1",
        "The number that is back when a breaker closes was that of an open one: no call had it.",
    ),
    Equivalent(
        "retries/retry",
        "delay = self.initial_delay_s * 2.0 ** min(retry, 64)",
        "64",
        "65",
        "Both are far over the longest wait, and far under what a float holds.",
    ),
    Equivalent(
        "sync/cells/grid",
        "NOT_OURS = -1",
        "1",
        "2",
        "Any number that is the place of no cell does; a test holds that it is negative.",
    ),
    Equivalent(
        "validation/progress/due_rows",
        "RANGES_PER_QUERY = 100  # each range is two columns of the query",
        "100",
        "101",
        "It only says how many ranges one query asks for; the answers are the same.",
    ),
    Equivalent(
        "sync/turn/judge",
        "return self._grid.place_of(work.cell) if self._grid and work.has_rows_to_write else -1",
        "1",
        "2",
        "Any number that is the place of no cell does, and both are negative.",
    ),
    Equivalent(
        "sync/revisit/horizon",
        "begin = scrubbed_to if scrubbed_to and start <= scrubbed_to < older_until else start",
        "start <= scrubbed_to < older_until",
        "start < scrubbed_to < older_until",
        "If both are equal, the scrub begins at the start either way.",
    ),
    Equivalent(
        "contract/sql_text",
        '_NOTHING = Token("", "", 0)',
        "0",
        "1",
        "Nobody asks where the token stands that comes before the first one.",
    ),
    Equivalent(
        "ledger/questions/losses",
        "(BATCHES.c.deletes_intended < _TAKEN, BATCHES.c.deletes_intended),",
        "BATCHES.c.deletes_intended < _TAKEN",
        "BATCHES.c.deletes_intended <= _TAKEN",
        "If both numbers are equal, either is the right one.",
    ),
    Equivalent(
        "ledger/questions/losses",
        "for row in sorted(recent, key=lambda row: row.seq):",
        "sorted(recent, key=lambda row: row.seq)",
        "list(recent)",
        "SQLite's index gives the rows in this order, which no database promises.",
    ),
    Equivalent(
        "ledger/questions/losses",
        'func.coalesce(BATCHES.c.rows_held, 0).label("held"),',
        "0",
        "1",
        "A batch that lost rows has said how many it held.",
    ),
    Equivalent(
        "ledger/questions/status",
        "return {}",
        "return {}",
        "return None",
        "Without a cell nothing is looked up in it.",
    ),
    Equivalent(
        "ledger/verbs/batch_plans",
        "for cell in sorted(known):",
        "sorted(known)",
        "list(known)",
        "The leases of all these cells are locked, so that the order shows nowhere.",
    ),
    Equivalent(
        "ledger/verbs/cell_marks",
        "where=given.row_time > MARKS.c.row_time,",
        "given.row_time > MARKS.c.row_time",
        "given.row_time >= MARKS.c.row_time",
        "Two marks for rows of one time are equally hard to clear.",
    ),
    Equivalent(
        "ledger/verbs/distrust",
        "_AT_ONCE = 5_000",
        "5000",
        "5001",
        "It only says how many rows one statement inserts.",
    ),
    Equivalent(
        "ledger/verbs/positions",
        "registry.lock_route(connection, route)",
        "registry.lock_route(connection, route)",
        "pass",
        "On SQLite the transaction itself is the lock.",
    ),
    Equivalent(
        "ledger/verbs/key_ranges",
        "registry.lock_route(connection, route)",
        "registry.lock_route(connection, route)",
        "pass",
        "On SQLite the transaction itself is the lock.",
    ),
    Equivalent(
        "ledger/verbs/proofs",
        "registry.lock_route(connection, route)",
        "registry.lock_route(connection, route)",
        "pass",
        "On SQLite the transaction itself is the lock.",
    ),
    Equivalent(
        "ledger/verbs/proofs",
        'case((CELLS.c.upto == CELLS.c.range_end, 1), else_=0).label("closed"),',
        "1",
        "2",
        "Any number but 0 is read as yes.",
    ),
    Equivalent(
        "ledger/verbs/quarantine",
        "gone = sorted(connection.execute(dropped.returning(QUARANTINE.c.number)).scalars())",
        "sorted(connection.execute(dropped.returning(QUARANTINE.c.number)).scalars())",
        "list(connection.execute(dropped.returning(QUARANTINE.c.number)).scalars())",
        "SQLite deletes in the order of the key, which no database promises.",
    ),
    Equivalent(
        "ledger/verbs/registry",
        "connection.execute(select(ROUTES.c.id).where(ROUTES.c.id == route.id).with_for_update())",
        "connection.execute(select(ROUTES.c.id).where(ROUTES.c.id == route.id).with_for_update())",
        "pass",
        "On SQLite the transaction itself is the lock.",
    ),
    Equivalent(
        "ledger/verbs/registry",
        "connection.execute(select(ROUTES.c.id).where(ROUTES.c.id == route.id).with_for_update())",
        "ROUTES.c.id == route.id",
        "ROUTES.c.id != route.id",
        "On SQLite the transaction itself is the lock.",
    ),
    Equivalent(
        "ledger/verbs/registry",
        "if start < known:",
        "start < known",
        "start <= known",
        "A start that is recorded again stays the same.",
    ),
    Equivalent(
        "ledger/verbs/registry",
        "cell = select(CELLS.c.slice).where(CELLS.c.route_id == route.id).limit(1)",
        "1",
        "2",
        "Only the first row is looked at.",
    ),
    Equivalent(
        "ledger/verbs/schema_versions",
        "_lock(connection, route)",
        "_lock(connection, route)",
        "pass",
        "On SQLite the transaction itself is the lock.",
    ),
    Equivalent(
        "ledger/verbs/schema_versions",
        "return json.dumps(body, sort_keys=True, ensure_ascii=False, allow_nan=False)",
        "True",
        "False",
        "Bodies are compared after they are read, when the order of keys is gone.",
    ),
    Equivalent(
        "ledger/verbs/schema_versions",
        "return json.dumps(body, sort_keys=True, ensure_ascii=False, allow_nan=False)",
        "False",
        "True",
        "A text is read back the same, however its characters are written.",
    ),
    Equivalent(
        "ledger/verbs/schema_versions",
        "connection.execute(row.with_for_update(key_share=True)).one()",
        "connection.execute(row.with_for_update(key_share=True)).one()",
        "pass",
        "On SQLite the transaction itself is the lock.",
    ),
    Equivalent(
        "ledger/verbs/schema_versions",
        "connection.execute(row.with_for_update(key_share=True)).one()",
        "True",
        "False",
        "SQLite knows no kinds of locks on rows.",
    ),
    Equivalent(
        "sync/identity/row_hash",
        "flags = array.fill_null(False).to_numpy(zero_copy_only=False)",
        "False",
        "True",
        "The number of an element without a value is not used.",
    ),
    Equivalent(
        "stores/harper/encoding/key_ids",
        "sizes = pc.fill_null(pc.binary_length(ids), 1).to_numpy(zero_copy_only=False)",
        "1",
        "2",
        "Both are neither empty nor too long, and a key without a value has a fault already.",
    ),
    Equivalent(
        "stores/harper/encoding/key_ids",
        "sizes = pc.fill_null(pc.binary_length(ids), 1).to_numpy(zero_copy_only=False)",
        "False",
        "True",
        "Numbers without NULLs are given without a copy all the same.",
    ),
    Equivalent(
        "stores/harper/encoding/key_ids",
        "unescaped = pc.fill_null(pc.match_substring_regex(ids, UNESCAPED), False)",
        "False",
        "True",
        "A key without a value is too short to be asked about.",
    ),
    Equivalent(
        "stores/harper/encoding/key_ids",
        "for row in np.flatnonzero(unescaped.to_numpy(zero_copy_only=False) & (sizes >= UNITS)):",
        "unescaped.to_numpy(zero_copy_only=False) & (sizes >= UNITS)",
        "unescaped.to_numpy(zero_copy_only=False) | (sizes >= UNITS)",
        "It only spares most rows the second look, which sees both for itself.",
    ),
    Equivalent(
        "sync/plan/shared_columns",
        "return any(came & self._live(earlier) for earlier in self.versions if earlier < version)",
        "earlier < version",
        "earlier <= version",
        "What a version lacks is never among what it has.",
    ),
    Equivalent(
        "cli/exit_codes",
        'shown = (f"  {code.value}  {MEANINGS[code]}" for code in sorted({*_ANY, *used}))',
        "sorted({*_ANY, *used})",
        "list({*_ANY, *used})",
        "A set of such small numbers is in their order already.",
    ),
    Equivalent(
        "defs/partitions",
        "*_, newest = windows_between(closed - 2 * contract.window, closed, contract.window)",
        "2",
        "3",
        "It only has to begin before the newest window.",
    ),
    Equivalent(
        "sync/revisit/open_window",
        "if ended < closes < at:",
        "ended < closes < at",
        "ended < closes <= at",
        "If both are equal, the next poll is at that time either way.",
    ),
    Equivalent(
        "stores/harper/reading/conversions",
        "_LONGEST = 400  # digits: no type has more, and a text may say 1e999999999",
        "400",
        "401",
        "No type has numbers of nearly so many digits.",
    ),
    Equivalent(
        "stores/harper/reading/conversions",
        "if not isinstance(exponent, int) or abs(exponent) > _LONGEST:",
        "abs(exponent) > _LONGEST",
        "abs(exponent) >= _LONGEST",
        "No type has numbers of nearly so many digits.",
    ),
    Equivalent(
        "ledger/verbs/slice_leases",
        "raise LedgerConflict(",
        "raise LedgerConflict(f'the lease of {route.name} changed under its lock "
        "({holder(seen)}). Nothing was changed. Try again: bqh sync {route.name}')",
        "pass",
        "Nobody can change a lease that this transaction has locked.",
    ),
    Equivalent(
        "validation/proof/table_proof",
        "if self.oldest and self.newest:",
        "self.oldest and self.newest",
        "self.oldest or self.newest",
        "Both are known as soon as one cell is proved.",
    ),
    Equivalent(
        "validation/schema_drift",
        "if 0 < told < before:",
        "0 < told < before",
        "0 < told <= before",
        "If both are equal, it is the same version either way.",
    ),
    Equivalent(
        "validation/schema_drift",
        "notes = ledger.audit(table, 1, kind=_ACCEPTED)",
        "1",
        "2",
        "Only the newest is looked at.",
    ),
    Equivalent(
        "validation/spot/sampled_cells",
        "ends = list(accumulate(commits[cell].rows if by_rows else 1 for cell in cells))",
        "1",
        "2",
        "Every cell has the same share either way.",
    ),
)
