"""Names end up in SQL, in Harper and in Dagster, so they are checked and quoted.

A name is checked when it is read and quoted when it is used; either alone stops an injection.
"""

import re
import unicodedata
from typing import Any

# Attributes that the sync writes into every record.
SYNCED_AT, BATCH, HASH = "_syncedAt", "_batch", "_hash"
DELETED_AT = "_deletedAt"  # only where rows gone from the source are marked, not deleted
ROW_METADATA = (SYNCED_AT, BATCH, HASH, DELETED_AT)
# Tables that the sync keeps beside the data.
SYNC_CHECKPOINT, SYNC_AUDIT, SYNC_LEASE = "SyncCheckpoint", "SyncAudit", "SyncLease"
SCHEMA_METADATA, SCHEMA_LOCK = "SchemaMetadata", "SchemaLock"
RESERVED_TARGETS = (SYNC_CHECKPOINT, SYNC_AUDIT, SCHEMA_METADATA, SCHEMA_LOCK, SYNC_LEASE)
_BIGQUERY_PREFIXES = (
    "_TABLE_",
    "_FILE_",
    "_PARTITION",
    "_ROW_TIMESTAMP",
    "__ROOT__",
    "_COLIDENTIFIER",
    "_CHANGE_",
)
# Harper answers 400 for these (4.7.29).
_REFUSED_BY_HARPER = ("__proto__", "constructor")
_LETTERS_MARKS_NUMBERS = frozenset("LMN")
_JOINERS = frozenset({"Pc", "Pd"})
_FLEXIBLE_COLUMN = frozenset("&%=+:<>#|")  # what BigQuery's flexible column names add
_LONGEST_TABLE = 1024  # bytes of UTF-8, BigQuery
_LONGEST_COLUMN = (
    250  # bytes of UTF-8: Harper's limit for an attribute; BigQuery's is 300 characters
)
_LONGEST_NAME = 128
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_PROJECT = re.compile(r"(?:[a-z0-9][a-z0-9.-]*:)?[a-z][a-z0-9-]*")


def project_name(value: Any) -> str:
    """Reads a Google Cloud project id, also one of the old form example.com:project."""
    text = _text(value)
    if not _PROJECT.fullmatch(text):
        raise ValueError(
            "is not a project id: lower-case letters, digits and dashes, a letter first"
        )
    return text


def dataset_name(value: Any) -> str:
    """Reads the name of a dataset, without its project."""
    return _bigquery_name(
        value, "dataset", "the project goes into projectId, the dataset stands alone"
    )


def table_name(value: Any) -> str:
    """Reads the name of one table or view, without its dataset."""
    return _bigquery_name(
        value,
        "table",
        "the dataset goes into dataset; for a wildcard or a partition use customQuery",
    )


def column_name(value: Any) -> str:
    """Reads the name of a top-level column that BigQuery can have and Harper can store."""
    text = _text(value)
    _refuse_characters(
        text, "column", _FLEXIBLE_COLUMN, "name top-level columns; nested fields come along whole"
    )
    if len(text.encode("utf-8")) > _LONGEST_COLUMN:
        raise ValueError(
            f"is longer than {_LONGEST_COLUMN} bytes, the most Harper takes: "
            "give it a shorter name in customQuery"
        )
    lowered = text.lower()
    for reserved in ROW_METADATA:
        if lowered == reserved.lower():
            raise ValueError(
                f"{reserved} is written by the sync into every record: "
                f"rename the column in customQuery (SELECT {text} AS ...)"
            )
    if lowered in _REFUSED_BY_HARPER:
        raise ValueError(
            "Harper refuses an attribute of this name: "
            f"rename it in customQuery (SELECT {text} AS ...)"
        )
    for prefix in _BIGQUERY_PREFIXES:
        if lowered.startswith(prefix.lower()):
            raise ValueError(
                f"BigQuery keeps names that begin with {prefix} for itself: "
                f"select it under another name in customQuery (SELECT *, {text} AS ...)"
            )
    return text


def contract_id(value: Any) -> str:
    """Reads the name of a contract, which becomes a Dagster name."""
    return _plain_name(value, "an id")


def target_name(value: Any) -> str:
    """Reads the name of a Harper table, which becomes a Dagster name and a REST path."""
    text = _plain_name(value, "a target table")
    for reserved in RESERVED_TARGETS:
        if text.lower() == reserved.lower():
            raise ValueError(
                f"{reserved} is a table of the sync itself: choose another name, such as {text}Data"
            )
    return text


def quoted(*names: str) -> str:
    """Writes the names as one BigQuery identifier: `project`.`dataset`.`table`."""
    for name in names:
        if not name or any(c in "`\\" or unicodedata.category(c)[0] == "C" for c in name):
            raise ValueError(f"{name!r} cannot be quoted as a BigQuery name")
    return ".".join(f"`{name}`" for name in names)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("must be text: put it in quotes if it is meant as a name")
    text = str(value)
    if not text.strip():
        raise ValueError("is blank: give the name")
    if text != text.strip():
        raise ValueError("begins or ends with a space: take it away")
    return text


def _bigquery_name(value: Any, kind: str, dot_hint: str) -> str:
    text = _text(value)
    _refuse_characters(text, kind, frozenset(), dot_hint)
    if len(text.encode("utf-8")) > _LONGEST_TABLE:
        raise ValueError(f"is longer than {_LONGEST_TABLE} bytes, the most BigQuery takes")
    return text


def _refuse_characters(text: str, kind: str, also: frozenset[str], dot_hint: str) -> None:
    for at, char in enumerate(text, start=1):
        category = unicodedata.category(char)
        if (
            category[0] in _LETTERS_MARKS_NUMBERS
            or category in _JOINERS
            or char == " "
            or char in also
        ):
            continue
        if char in ".*$":
            raise ValueError(f"a {kind} name holds no {char!r}: {dot_hint}")
        shown = repr(char) if char.isprintable() else f"U+{ord(char):04X}"
        raise ValueError(
            f"a {kind} name holds no {shown} (character {at}): "
            "letters, digits, _, - and spaces are allowed"
        )


def _plain_name(value: Any, kind: str) -> str:
    text = _text(value)
    if len(text) > _LONGEST_NAME:
        raise ValueError(f"is longer than {_LONGEST_NAME} characters")
    if not _NAME.fullmatch(text):
        better = re.sub(r"[^A-Za-z0-9_]+", "_", text).strip("_")
        better = better if _NAME.fullmatch(better) else f"t_{better}".rstrip("_")
        raise ValueError(
            f"{kind} is made of letters, digits and _, a letter first: {better}, for instance"
        )
    return text
