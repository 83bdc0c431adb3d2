"""Texts by which Harper does not find a row again, though it stores the row.

Measured with Harper 4.7.29 over lengths, characters and positions: it escapes U+0000 to U+0004 in
the keys of its indexes only if the text has fewer than 64 UTF-16 units. In a longer one

- U+0001 to U+0004 anywhere, or U+0000 at the end, as part of an id: the row is left out of every
  search by another index, such as a range of its timestamp; by its id it is found;
- U+0000 inside an id splits it in two. Some such rows are found; others make the table's order of
  ids, its description and even its drop answer 500;
- hundreds of them in an id: {"error": "RangeError"} answers in the row's place, or none comes at
  all: the answer of a range stops in the middle and is never ended;
- as an indexed value: a search for that very value finds nothing; all other searches find the row.

All other texts of up to 1,978 bytes were found in every way, and so were all integers.
"""

import re

UNITS = 64
UNESCAPED = r"[\x00-\x04]"
_UNESCAPED = re.compile(UNESCAPED)


def is_lost(text: str) -> bool:
    """Whether Harper's indexes lose what has this text for its key."""
    if len(text) * 2 < UNITS or not _UNESCAPED.search(text):
        return False
    return len(text.encode("utf-16-le", "surrogatepass")) // 2 >= UNITS
