"""From a located block to a model: pydantic's errors in the user's words, at the user's place."""

from collections.abc import Iterator
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from bq_harper_assets.contract.fields.declared_model import Fault, Wrong
from bq_harper_assets.contract.loading.located import Located, Step, path_text
from bq_harper_assets.contract.loading.problems import Problem
from bq_harper_assets.contract.loading.spelling import in_style_of, with_canonical_keys

Model = TypeVar("Model", bound=BaseModel)


def checked(
    block: Located, model: type[Model], problems: list[Problem], about: str = ""
) -> Model | None:
    """The model; None, with every problem noted, if the block does not make one."""
    block = with_canonical_keys(block, model, problems, about)
    found, faults = _validated(block, model)
    bad = {fault.steps[0] for fault in faults if fault.steps}
    rest = {key: entry for key, entry in block.mapping.items() if key not in bad}
    if len(rest) < len(block.mapping):
        # Contradictions only show among values that are right by themselves: look at these again.
        _, more = _validated(block.with_keys(rest), model)
        faults += [
            f for f in more if f not in faults and bad.isdisjoint((*f.steps[:1], *f.involves))
        ]
    problems.extend(_problems(block, model, faults, about))
    return found


def _validated(block: Located, model: type[Model]) -> tuple[Model | None, list[Fault]]:
    try:
        return model.model_validate(block.plain()), []
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
    return None, [fault for detail in details for fault in _faults(detail, model)]


def _faults(detail: Any, model: type[BaseModel]) -> Iterator[Fault]:
    steps: tuple[Step, ...] = tuple(detail["loc"])
    kind = detail["type"]
    context = detail.get("ctx", {})
    if isinstance(wrong := context.get("error"), Wrong):
        for fault in wrong.faults:
            yield Fault((*steps, *fault.steps), fault.message, fault.involves)
    elif kind == "value_error":
        yield Fault(steps, str(wrong))
    elif kind == "literal_error":
        yield Fault(steps, f"must be {context['expected'].replace(chr(39), '')}")
    elif kind == "missing":
        yield Fault(steps, f"is missing: {_description(model, steps)}")
    elif kind in ("model_type", "dict_type"):
        yield Fault(steps, "must be a block of keys, each on its own line below it")
    else:
        yield Fault(steps, str(detail["msg"]))


def _problems(
    block: Located, model: type[BaseModel], faults: list[Fault], about: str
) -> Iterator[Problem]:
    for fault in faults:
        entry, beyond = block.nearest(fault.steps)
        if entry.broken:
            continue
        if beyond:
            place = entry.place
            for step in beyond:
                place = place.below(in_style_of(entry, step) if isinstance(step, str) else step)
            yield Problem(
                file=place.file,
                line=place.line,
                path=path_text(place.path),
                value=None,
                message=fault.message,
                about=about,
            )
        else:
            yield entry.problem(fault.message, about)


def _description(model: type[BaseModel], steps: tuple[Step, ...]) -> str:
    for name, field in model.model_fields.items():
        if steps[-1] in (name, field.alias):
            return str(field.description)
    return "it is required"
