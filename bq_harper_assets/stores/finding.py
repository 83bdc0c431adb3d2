"""A finding says how a check of a store went, and what to do about it."""

from dataclasses import dataclass
from typing import Literal

_Verdict = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Finding:
    """A finding is the result of one check; `next_step` says what to type or to grant, if any."""

    subject: str
    verdict: _Verdict
    detail: str
    next_step: str = ""
