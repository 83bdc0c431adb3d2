"""A block of keys becomes a model, and pydantic's errors get the user's words and place."""

from collections.abc import Iterator
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from dagster_shared.yaml_utils.source_position import KeyPathSegment
from pydantic import BaseModel, ValidationError

from bq_harper_assets.contract.fields.declared_model import FieldFault, Wrong
from bq_harper_assets.contract.loading.config_entry import ConfigEntry, NoValue
from bq_harper_assets.contract.loading.problems import Problem
from bq_harper_assets.contract.loading.spelling import (
    canonical_key,
    keys_of,
    nearest,
    to_snake,
    unknown_key,
)

Model = TypeVar("Model", bound=BaseModel)


def checked(
    block: ConfigEntry, model: type[Model], problems: list[Problem], about: str = ""
) -> Model | None:
    """Makes the model; notes every problem and returns None if the block does not make one."""
    found, faults = validated(_canonical(block, model, problems, about), model)
    problems.extend(block.below(*fault.steps).problem(fault.message, about) for fault in faults)
    return found


def validated(values: Any, model: type[Model]) -> tuple[Model | None, list[FieldFault]]:
    """Makes the model of plain values under its own keys, or lists every fault of them."""
    found, faults = _validated(values, model)
    bad = {fault.steps[0] for fault in faults if fault.steps}
    if bad and isinstance(values, dict):
        # Contradictions only show among values that are right by themselves: look at these again.
        _, more = _validated({key: v for key, v in values.items() if key not in bad}, model)
        faults += [
            f for f in more if f not in faults and bad.isdisjoint((*f.steps[:1], *f.involves))
        ]
    return found, [fault for fault in faults if not _is_told(values, fault.steps)]


def _validated(values: Any, model: type[Model]) -> tuple[Model | None, list[FieldFault]]:
    try:
        return model.model_validate(values), []
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
    return None, [fault for detail in details for fault in _faults(detail, model)]


def _is_told(values: Any, steps: tuple[KeyPathSegment, ...]) -> bool:
    for step in steps:
        if isinstance(values, dict):
            values = values.get(step)
        elif isinstance(values, list) and isinstance(step, int):
            values = values[step]
    return values is NoValue.BROKEN


def _faults(detail: Any, model: type[BaseModel]) -> Iterator[FieldFault]:
    steps: tuple[KeyPathSegment, ...] = tuple(detail["loc"])
    kind = detail["type"]
    context = detail.get("ctx", {})
    if isinstance(wrong := context.get("error"), Wrong):
        for fault in wrong.faults:
            yield FieldFault((*steps, *fault.steps), fault.message, fault.involves)
    elif kind == "value_error":
        yield FieldFault(steps, str(wrong))
    elif kind == "literal_error":
        yield FieldFault(steps, f"must be {context['expected'].replace(chr(39), '')}")
    elif kind == "missing":
        yield FieldFault(steps, f"is missing: {_description(model, steps)}")
    elif kind in ("model_type", "dict_type"):
        yield FieldFault(steps, "must be a block of keys, each on its own line below it")
    else:
        yield FieldFault(steps, str(detail["msg"]))


def _description(model: type[BaseModel], steps: tuple[KeyPathSegment, ...]) -> str:
    for name, field in model.model_fields.items():
        if steps[-1] in (name, field.alias):
            return str(field.description)
    return "it is required"


def _canonical(
    block: ConfigEntry, model: type[BaseModel], problems: list[Problem], about: str
) -> Any:
    """Puts the block's values under the model's keys; leaves out unknown and empty ones."""
    if not isinstance(block.value, dict):
        return block.value
    known = keys_of(model)
    elsewhere = _inner_keys(model)
    found: dict[str, Any] = {}
    for written, entry in block.items():
        key = canonical_key(written, known)
        if key is None:
            message = unknown_key(written, block.value, known, elsewhere)
            problems.append(entry.key_problem(message, about))
            if meant := nearest(written, known):
                # Mistyped, so not missing as well.
                found.setdefault(meant, NoValue.BROKEN)
        elif found.get(key, NoValue.BROKEN) is not NoValue.BROKEN:
            message = f"is given twice, as {key} and {to_snake(key)}: keep one"
            problems.append(entry.key_problem(message, about))
        elif entry.value is not None:
            found[key] = _inner(entry, _annotation(model, key), problems, about)
    return found


def _inner(entry: ConfigEntry, annotation: Any, problems: list[Problem], about: str) -> Any:
    if _is_model(annotation):
        return _canonical(entry, annotation, problems, about)
    is_mapping = get_origin(annotation) is dict and isinstance(entry.value, dict)
    if is_mapping and _is_model(inner := get_args(annotation)[1]):
        return {key: _canonical(item, inner, problems, about) for key, item in entry.items()}
    return entry.value


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
