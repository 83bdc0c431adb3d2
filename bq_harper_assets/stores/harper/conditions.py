"""A condition says which rows search_by_conditions is to find."""

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

# The short forms (gt, ge, lt, le, eq) are left out: on untyped attributes they give wrong rows
# for text.
Comparator = Literal[
    "equals",
    "not_equal",
    "contains",
    "starts_with",
    "ends_with",
    "greater_than",
    "greater_than_equal",
    "less_than",
    "less_than_equal",
    "between",
    "gelt",
    "gele",
    "gtlt",
    "gtle",
]


@dataclass(frozen=True)
class Condition:
    """A condition compares one attribute with a value.

    A range should be one `gelt`, `between`...: two conditions on one attribute scan far more.
    """

    attribute: str
    comparator: Comparator
    value: Any

    def __post_init__(self) -> None:
        known = get_args(Comparator)
        if self.comparator not in known:
            raise ValueError(f"comparator {self.comparator!r} is none of {', '.join(known)}")

    def as_fields(self) -> dict[str, Any]:
        """Returns the condition in the form that Harper takes."""
        return asdict(self)
