"""Many windows are told in few words."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bq_harper_assets.sync.cells.window import Window

_NAMED = 5


def some_windows(windows: "Iterable[Window]") -> str:
    """Says how many windows there are, and names the first of them."""
    keys = [window.key for window in sorted(set(windows))]
    more = f" and {len(keys) - _NAMED:,} more" if len(keys) > _NAMED else ""
    return f"{len(keys):,} window{'' if len(keys) == 1 else 's'}, {', '.join(keys[:_NAMED])}{more}"
