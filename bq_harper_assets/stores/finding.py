"""What a look at a store found, and what to do about it."""

from dataclasses import dataclass
from typing import Literal

_Verdict = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Finding:
    """One thing that was tried; `next_step` is what to type or to grant, if anything."""

    subject: str
    verdict: _Verdict
    detail: str
    next_step: str = ""
