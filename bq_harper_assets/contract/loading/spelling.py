"""Keys may be in camelCase or snake_case; typing errors are told apart from them."""

import difflib
import re
from collections.abc import Iterable

from pydantic import BaseModel

# Keys of the Harper plugin's config.yaml whose work is done elsewhere here.
MOVED = {
    "operations": "Harper's address is not written here: set OPERATIONSAPI_URL, "
    "OPERATIONSAPI_USER and OPERATIONSAPI_PASS, or harper: in config/profiles",
    "synthesizer": "sample data has no settings here: see bqh maritime --help",
    "validation": "every table is checked by its asset checks: take the block out",
    "retry": "retries are set by maxRetries and initialRetryDelay under bigquery:",
    "proxy": "a proxy is set for the whole process: HTTPS_PROXY=http://host:port "
    "in the environment",
    "useStreamingAPIs": "rows are always read by streams: take the key out",
}


def to_snake(key: str) -> str:
    """Writes timestampColumn as timestamp_column; int64 stays, unlike with pydantic's function."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key).lower()


def keys_of(model: type[BaseModel]) -> tuple[str, ...]:
    """Lists the model's keys in camelCase."""
    return tuple(field.alias or name for name, field in model.model_fields.items())


def in_style_of(neighbours: Iterable[str], key: str, written: str = "") -> str:
    """Writes the key as this user would: like the mistyped one, else like its neighbours."""
    if re.search("[a-z][A-Z]", written):
        return key
    return to_snake(key) if any("_" in name for name in (written, *neighbours)) else key


def canonical_key(written: str, known: Iterable[str]) -> str | None:
    """Finds the known key that is meant, in camelCase; None if there is none."""
    for key in known:
        if written in (key, to_snake(key)):
            return key
    return None


def nearest(written: str, known: Iterable[str]) -> str | None:
    """Finds the known word that was probably meant."""
    lowered = {word.lower(): word for word in known}
    bare = written.replace("_", "").replace("-", "").lower()
    if bare in lowered:
        return lowered[bare]
    found = difflib.get_close_matches(bare, lowered, n=1, cutoff=0.7)
    return lowered[found[0]] if found else None


def unknown_key(
    written: str, neighbours: Iterable[str], known: Iterable[str], elsewhere: dict[str, str]
) -> str:
    """Says what is wrong with an unknown key; `elsewhere` says where others belong."""
    known, neighbours = tuple(known), tuple(neighbours)
    for moved, hint in MOVED.items():
        if written in (moved, to_snake(moved)):
            return f"is a key of the older plugin: {hint}"
    if (camel := canonical_key(written, elsewhere)) is not None:
        return f"does not belong here: {elsewhere[camel]}"
    if meant := nearest(written, known):
        return f"is not a key; did you mean {in_style_of(neighbours, meant, written)}?"
    if meant := nearest(written, elsewhere):
        spelled = in_style_of(neighbours, meant, written)
        return f"is not a key; did you mean {spelled}? {elsewhere[meant]}"
    valid = ", ".join(in_style_of(neighbours, key) for key in known)
    return f"is not a key; valid here: {valid}"
