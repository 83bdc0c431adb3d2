"""Defines Harper's errors; the class decides whether sending the request again may help.

HarperError
├── HarperUnavailable        overloaded or away: the client sends again by itself
│   ├── HarperIndexing       the index that a search needs is still being built
│   └── HarperGarbled        answered 200 without an answer in it: whether it acted is not known
├── HarperRefused            the request itself is wrong: sending it again cannot help
│   ├── HarperExists         what was to be made exists already
│   ├── HarperNotFound       the table or its database does not exist
│   └── HarperUnauthorized   the login is wrong, or its role lacks a right
├── HarperRowBroken          an item of an answer is an error or has no id, so it is not a row
├── HarperNotUnderstood      something answered, and not as Harper's Operations API does
└── HarperUnsafe             the address would send the password in the clear, or is not trusted

BqhError
├── UnreadableValue          a value in Harper is not of the form that the sync writes
├── NotAllWritten            Harper wrote another number of rows than it was sent: the cell fails
├── HarperInUse              a run of another ledger may still write: wait until the time it names
├── NoPassword               a task finds no login for Harper on its machine
└── PasswordNotWritten       the driver cannot write the login where tasks read it
"""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bq_harper_assets.errors import BqhError, TransientError
from bq_harper_assets.retries.retry import Call

if TYPE_CHECKING:
    from bq_harper_assets.ledger.records import LedgerRoute


class HarperError(BqhError):
    """Harper did not do what `call` asked; `said` is why, in one clause and without any secret."""

    def __init__(self, call: Call, said: str, status: int | None = None) -> None:
        super().__init__(call, said, status)  # with all arguments, so that it survives pickling
        self.call = call
        self.said = said
        self.status = status

    def __str__(self) -> str:
        return f"{self.call} failed: {self.call.store} {self.said}. {self._next()}"

    def _next(self) -> str:
        return "Nothing was changed. Next: bqh doctor"


class HarperUnavailable(HarperError, TransientError):
    """Harper is overloaded or away: sending the same again may help, and does no harm."""

    def __init__(
        self,
        call: Call,
        said: str,
        status: int | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(call, said, status)
        self.retry_after_s = retry_after_s
        self.tries = 1

    def __str__(self) -> str:
        tries = f" {self.tries} times" if self.tries > 1 else ""
        return f"{self.call} failed{tries}: {self.call.store} {self.said}. {self._next()}"

    def _next(self) -> str:
        return (
            "What was written before stays, and doing it again changes nothing twice. "
            "Next: bqh doctor, then run the same command again"
        )


class HarperIndexing(HarperUnavailable):
    """The index that a search needs is still being built: Harper works, so no breaker counts it."""


class HarperGarbled(HarperUnavailable):
    """The answer is 200 but empty or cut short, as from a gateway or a Harper that is ending."""

    def _next(self) -> str:
        return (
            "Whether it was applied is not known, and doing it again changes nothing twice. If this"
            " goes on, set OPERATIONSAPI_URL to Harper's Operations API, then: bqh doctor"
        )


class HarperRefused(HarperError):
    """The request itself is wrong: sending it again cannot help."""

    def _next(self) -> str:
        return "Nothing of this request was applied, and sending it again cannot help"


class HarperExists(HarperRefused):
    """The thing that was to be made exists already."""


class HarperNotFound(HarperRefused):
    """The table or its database does not exist."""


class HarperUnauthorized(HarperRefused):
    """The login is wrong, or its role lacks the rights that `missing` lists."""

    def __init__(
        self,
        call: Call,
        said: str,
        status: int | None = None,
        missing: tuple[str, ...] = (),
    ) -> None:
        super().__init__(call, said, status)
        self.missing = missing

    def _next(self) -> str:
        if not self.missing:
            return (
                "Nothing was changed. Next: set OPERATIONSAPI_USER and OPERATIONSAPI_PASS, "
                "then: bqh doctor"
            )
        return "\n  - ".join(
            (
                "Nothing was changed. Next: give its role what is missing, then: bqh doctor",
                *self.missing,
            )
        )


class HarperNotUnderstood(HarperError):
    """Something answered, and not as Harper's Operations API does."""

    def _next(self) -> str:
        return "Next: set OPERATIONSAPI_URL to Harper's Operations API, then: bqh doctor"


class HarperRowBroken(HarperError):
    """Harper could not read one row of an answer, so the other rows are not all."""

    def _next(self) -> str:
        return (
            "Nothing was changed, and nothing is said of the rows of this range. Next: bqh verify"
            " TABLE --deep, which names rows that no range finds"
        )


class HarperUnsafe(HarperError):
    """The address would send the password in the clear, or is not trusted: nothing was sent."""

    def _next(self) -> str:
        return "Nothing was sent. Next: use https with a certificate of a known authority"


class UnreadableValue(BqhError):
    """Harper holds a value that the sync cannot have written under this schema.

    Others have changed it, or it was written under another schema.
    """

    def __init__(self, path: str, value: object, expected: str) -> None:
        self.path = path
        shown = repr(value)
        shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
        super().__init__(
            f"Harper holds {shown} in {path}, where the sync stores {expected}. Nothing was"
            " changed; materialise this row's partition again to write what the source says"
        )


class HarperInUse(BqhError):
    """A run of another ledger may still be writing to the Harper table."""

    def __init__(self, table: "LedgerRoute", until: float) -> None:
        when = datetime.fromtimestamp(until, UTC)
        super().__init__(
            f"a run of another ledger may still be writing to Harper's table "
            f"{table.facts.target}, until {when:%F %T} UTC at most. Nothing was changed. Stop "
            f"whatever uses that ledger; then, after that time, type: bqh reconcile {table.name}"
        )


class NotAllWritten(BqhError):
    """Harper wrote another number of rows than it was sent."""


class NoPassword(BqhError):
    """A task's machine has neither a login file that the task can read nor the variable."""


class PasswordNotWritten(BqhError):
    """The driver cannot write the login file into the folder where tasks read it."""
