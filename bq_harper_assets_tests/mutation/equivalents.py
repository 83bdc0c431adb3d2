"""Changes that no test can notice, because the changed module does the same, each with its reason.

A change that is listed here and noticed all the same, or that cannot be made any more, fails
`make mutations`: the list does not outlive what it speaks of.
"""

from typing import NamedTuple


class Equivalent(NamedTuple):
    """A change after which a module does the same as before."""

    module: str
    before: str
    after: str
    reason: str


EQUIVALENTS: tuple[Equivalent, ...] = ()
