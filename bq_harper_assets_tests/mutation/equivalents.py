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
        "stores/breaker",
        "probing: bool = False",
        "False",
        "True",
        "Only an open breaker is asked for it, and the call that opens it sets it.",
    ),
    Equivalent(
        "stores/breaker",
        "changes: int = 0",
        "0",
        "1",
        "The number is only compared with itself at an earlier time.",
    ),
    Equivalent(
        "stores/breaker",
        "breaker.changes += 1",
        "1",
        "2",
        "The number only has to differ from all that were there before.",
    ),
    Equivalent(
        "stores/breaker",
        "breaker.changes += 1",
        "breaker.changes += 1",
        "breaker.changes -= 1",
        "The number that is back when a breaker closes was that of an open one: no call had it.",
    ),
    Equivalent(
        "stores/retry",
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
)
