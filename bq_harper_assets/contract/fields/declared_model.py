"""All models of the configuration are frozen, know their keys, and take both spellings of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, core_schema


class Declared(BaseModel):
    """This is a block of keys that a user writes."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        alias_generator=to_camel,
        populate_by_name=True,
        hide_input_in_errors=True,  # an input may be a secret
    )


@dataclass(frozen=True)
class FieldFault:
    """A fault is at the end of `steps`; `involves` names other fields that it only holds with."""

    steps: tuple[str | int, ...]
    message: str
    involves: tuple[str, ...] = ()


class Wrong(ValueError):
    """A value has one or more faults."""

    def __init__(self, *faults: FieldFault) -> None:
        self.faults = faults
        super().__init__("; ".join(fault.message for fault in faults))


@dataclass(frozen=True, eq=False)
class Reads:
    """This annotates a field with how its value is read and how an editor checks it."""

    parse: Callable[[Any], Any]
    json_schema: dict[str, Any]

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.parse)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return dict(self.json_schema)
