"""Keys in camelCase or snake_case, told apart from typing errors."""

import difflib
import re
from collections.abc import Iterable
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel

from bq_harper_assets.contract.loading.located import Located
from bq_harper_assets.contract.loading.problems import Problem

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
    """timestampColumn as timestamp_column; int64 stays, unlike with pydantic's own function."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key).lower()


def keys_of(model: type[BaseModel]) -> tuple[str, ...]:
    """The model's keys in camelCase."""
    return tuple(field.alias or name for name, field in model.model_fields.items())


def in_style_of(block: Located, key: str, written: str = "") -> str:
    """The key as this user would write it: like the mistyped one, else like its neighbours."""
    if re.search("[a-z][A-Z]", written):
        return key
    neighbours = [str(entry.place.path[-1]) for entry in block.mapping.values()]
    return to_snake(key) if any("_" in name for name in (written, *neighbours)) else key


def canonical_key(written: str, known: Iterable[str]) -> str | None:
    """The known key that is meant, in camelCase; None if there is none."""
    for key in known:
        if written in (key, to_snake(key)):
            return key
    return None


def nearest(written: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant."""
    lowered = {word.lower(): word for word in known}
    bare = written.replace("_", "").replace("-", "").lower()
    if bare in lowered:
        return lowered[bare]
    found = difflib.get_close_matches(bare, lowered, n=1, cutoff=0.7)
    return lowered[found[0]] if found else None


def unknown_key(
    entry: Located,
    written: str,
    block: Located,
    known: Iterable[str],
    about: str,
    elsewhere: dict[str, str],
) -> Problem:
    """What to tell about a key not known here; `elsewhere` says where others belong."""
    known = tuple(known)
    for moved, hint in MOVED.items():
        if written in (moved, to_snake(moved)):
            return entry.key_problem(f"is a key of the older plugin: {hint}", about)
    if (camel := canonical_key(written, elsewhere)) is not None:
        return entry.key_problem(f"does not belong here: {elsewhere[camel]}", about)
    if meant := nearest(written, known):
        return entry.key_problem(
            f"is not a key; did you mean {in_style_of(block, meant, written)}?", about
        )
    if meant := nearest(written, elsewhere):
        spelled = in_style_of(block, meant, written)
        return entry.key_problem(f"is not a key; did you mean {spelled}? {elsewhere[meant]}", about)
    valid = ", ".join(in_style_of(block, key) for key in known)
    return entry.key_problem(f"is not a key; valid here: {valid}", about)


def with_canonical_keys(
    block: Located, model: type[BaseModel], problems: list[Problem], about: str = ""
) -> Located:
    """The block and those in it with the models' own keys; unknown and empty ones taken out."""
    if not isinstance(block.value, dict):
        return block
    known = keys_of(model)
    elsewhere = _inner_keys(model)
    found: dict[str, Located] = {}
    for written, entry in block.mapping.items():
        key = canonical_key(written, known)
        if key is None:
            problems.append(unknown_key(entry, written, block, known, about, elsewhere))
            if meant := nearest(written, known):
                # Mistyped, so not missing as well.
                found.setdefault(meant, Located(entry.place, None, broken=True))
        elif key in found and not found[key].broken:
            problems.append(
                entry.key_problem(f"is given twice, as {key} and {to_snake(key)}: keep one", about)
            )
        elif entry.value is not None or entry.broken:
            found[key] = _inner(entry, model, key, problems, about)
    return block.with_keys(found)


def _inner(
    entry: Located, model: type[BaseModel], key: str, problems: list[Problem], about: str
) -> Located:
    annotation = _annotation(model, key)
    if _is_model(annotation):
        return with_canonical_keys(entry, annotation, problems, about)
    is_mapping = get_origin(annotation) is dict and isinstance(entry.value, dict)
    if is_mapping and _is_model(inner := get_args(annotation)[1]):
        items = entry.mapping.items()
        return entry.with_keys(
            {name: with_canonical_keys(item, inner, problems, about) for name, item in items}
        )
    return entry


def _inner_keys(model: type[BaseModel]) -> dict[str, str]:
    inner: dict[str, str] = {}
    for key in keys_of(model):
        annotation = _annotation(model, key)
        if _is_model(annotation):
            inner |= {name: f"write it under {key}:" for name in keys_of(annotation)}
    return inner


def _annotation(model: type[BaseModel], key: str) -> Any:
    for name, field in model.model_fields.items():
        if key == (field.alias or name):
            annotation = field.annotation
            if get_origin(annotation) in (Union, UnionType):
                return next(a for a in get_args(annotation) if a is not type(None))
            return annotation
    raise KeyError(key)


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
