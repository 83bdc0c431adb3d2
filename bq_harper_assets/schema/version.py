"""A schema version lists every column a table has had, its spelling in each store, its state."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

from bq_harper_assets.schema.earlier_releases import (
    as_first_stored,
    decided,
    has_offer,
    synced_fields,
)
from bq_harper_assets.schema.logical import Column, Kind, Spelling

Spell = Callable[[Column, str], Spelling]  # of a column or field at this path of the source


class State(StrEnum):
    """A state says what a version does with a column."""

    LIVE = "live"  # it is read, written, hashed and proved
    RETIRED = "retired"  # it is not read any more; the target keeps what was written
    WAITING = "waiting"  # the source has it, and it is not synced until somebody decides so


@dataclass(frozen=True, kw_only=True)
class VersionColumn:
    """A version column is one column or nested field of a schema version."""

    source: Spelling
    target: Spelling
    kind: Kind
    repeated: bool = False
    required: bool = False
    fields: tuple["VersionColumn", ...] = ()
    description: str = ""
    max_length: int | None = None
    indexed: bool = False
    state: State = State.LIVE
    written: bool = True  # rows may hold values under this name
    waited: bool = False  # it was retired while it waited, so it waits again when it comes back
    offered: tuple["VersionColumn", ...] = ()  # all fields that the source has, if some wait

    @classmethod
    def of(cls, column: Column, spelled: Spell, path: str = "") -> "VersionColumn":
        """Makes a live column of one of the source; `spelled` says how the target spells it."""
        path = f"{path}.{column.name}" if path else column.read_as
        return cls(
            source=Spelling(column.read_as, column.spelling),
            target=spelled(column, path),
            kind=column.kind,
            repeated=column.repeated,
            required=column.required,
            fields=tuple(cls.of(field, spelled, path) for field in column.fields),
            description=column.description,
            max_length=column.max_length,
        )

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> "VersionColumn":
        """Makes a column of what body() returned; the first release recorded fewer entries."""
        if "form" not in body:
            body = {**body, **as_first_stored(body["kind"], body["repeated"])}
        # Earlier releases let single fields wait; now all that the source offers wait as one.
        waits = any(map(has_offer, body["fields"]))
        offered = body["fields"] if waits else body.get("offered", ())
        return cls(
            source=Spelling(body.get("source", body["name"]), body.get("spelling", "")),
            target=Spelling(body["name"], body["type"], body["form"]),
            kind=Kind(body["kind"]),
            repeated=body["repeated"],
            required=body["required"],
            fields=tuple(cls.parse(each) for each in synced_fields(body["fields"])),
            description=body.get("description", ""),
            max_length=body.get("max_length"),
            indexed=body.get("indexed", False),
            state=State(body.get("state", State.LIVE)),
            written=body.get("written", True),
            waited=body.get("waited", False),
            offered=tuple(cls.parse(decided(each)) for each in offered),
        )

    def body(self) -> dict[str, Any]:
        """Returns the column as JSON."""
        return {
            "name": self.target.name,
            "source": self.source.name,
            "kind": self.kind.value,
            "form": self.target.form,
            "type": self.target.type,
            "repeated": self.repeated,
            "required": self.required,
            "fields": [each.body() for each in self.fields],
            "spelling": self.source.type,
            "description": self.description,
            "max_length": self.max_length,
            "indexed": self.indexed,
            "state": self.state.value,
            "written": self.written,
            # These are left out where they say nothing, so that recorded versions stay equal.
            **({"waited": True} if self.waited else {}),
            **({"offered": [each.body() for each in self.offered]} if self.offered else {}),
        }

    @property
    def name(self) -> str:
        """Gives the name that the target has for the column, which stays when the source's goes."""
        return self.target.name

    def named(self, name: str) -> "VersionColumn":
        """Gives the column another name in the target."""
        return replace(self, target=replace(self.target, name=name))

    @property
    def is_live(self) -> bool:
        """Says whether the version syncs the column."""
        return self.state is State.LIVE

    @property
    def waits(self) -> bool:
        """Says whether a person has to decide on the column, or on fields added to it."""
        return self.state is State.WAITING or (self.is_live and bool(self.offered))

    @property
    def in_source(self) -> "VersionColumn":
        """Gives the column with all fields that the source has in it."""
        return replace(self, fields=self.offered, offered=()) if self.offered else self

    @property
    def logical(self) -> Column:
        """Describes the column for reading it from the source."""
        return Column(
            name=self.name,
            kind=self.kind,
            repeated=self.repeated,
            required=self.required,
            fields=tuple(each.logical for each in self.fields),
            spelling=self.source.type,
            description=self.description,
            max_length=self.max_length,
            source_name=self._source_name,
        )

    @property
    def _source_name(self) -> str:
        return "" if self.source.name == self.name else self.source.name

    @property
    def paths(self) -> frozenset[str]:
        """Gives the paths of the column and of the fields inside it: address, address.zip."""
        return frozenset(paths_of((self,)))

    @property
    def type_text(self) -> str:
        """Gives the source's type as a user knows it, with its fields: ARRAY<STRUCT<a INT64>>."""
        name = self.source.type or self.kind.value
        if self.fields:
            inner = ", ".join(f"{each.name} {each.type_text}" for each in self.fields)
            name = f"STRUCT<{inner}>"
        return f"ARRAY<{name}>" if self.repeated else name

    @property
    def mode(self) -> str:
        """Gives the word for how many values a row has: REPEATED, REQUIRED or NULLABLE."""
        if self.repeated:
            return "REPEATED"
        return "REQUIRED" if self.required else "NULLABLE"


@dataclass(frozen=True)
class Layout:
    """A layout says how the source partitions and clusters its rows, as far as that was read."""

    partition_field: str | None = None
    clustering: tuple[str, ...] = ()
    primary_key: tuple[str, ...] = ()


@dataclass(frozen=True)
class StorePair:
    """These are the stores whose spellings a version has."""

    source: str
    target: str


@dataclass(frozen=True, kw_only=True)
class TableVersion:
    """A table version has a table's columns at one version of its schema."""

    columns: tuple[VersionColumn, ...]  # those of the source in its order, then retired ones
    key: tuple[str, ...] = ()
    primary_key: str = "id"
    id_paths: tuple[str, ...] = ()  # what a keyless table's ids are made of; empty while undecided
    layout: Layout = field(default=Layout())
    not_selected: tuple[str, ...] = ()  # columns of the source that the contract leaves out
    # Versions of earlier releases name none, and say the same.
    stores: StorePair | None = field(default=None, compare=False)

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> "TableVersion":
        """Makes a version of what body() returned."""
        indexed = set(body.get("indexed", ()))  # versions of the first release list them here
        columns = tuple(
            VersionColumn.parse({"indexed": c["name"] in indexed} | c) for c in body["columns"]
        )
        layout = body.get("layout", {})
        names = [column.name for column in columns]
        return cls(
            columns=columns,
            key=tuple(body["key"]),
            primary_key=body["primary_key"],
            id_paths=tuple(
                _id_paths(body.get("id_columns", () if body["key"] else names), columns)
            ),
            layout=Layout(
                layout.get("partition_field"),
                tuple(layout.get("clustering", ())),
                tuple(layout.get("primary_key", ())),
            ),
            not_selected=tuple(body.get("not_selected", ())),
            stores=StorePair(**body["stores"]) if "stores" in body else None,
        )

    def body(self) -> dict[str, Any]:
        """Returns the version as the JSON that the ledger stores."""
        return {
            "columns": [column.body() for column in self.columns],
            "key": list(self.key),
            "primary_key": self.primary_key,
            "id_columns": list(self.id_paths),
            "layout": {
                "partition_field": self.layout.partition_field,
                "clustering": list(self.layout.clustering),
                "primary_key": list(self.layout.primary_key),
            },
            "not_selected": list(self.not_selected),
            **({"stores": asdict(self.stores)} if self.stores else {}),
        }

    @property
    def live(self) -> tuple[VersionColumn, ...]:
        """Gives the columns that are synced."""
        return tuple(column for column in self.columns if column.is_live)

    @property
    def live_names(self) -> frozenset[str]:
        """Gives the target's names of the columns that are synced."""
        return frozenset(column.name for column in self.live)

    @property
    def live_paths(self) -> frozenset[str]:
        """Gives the paths of the synced columns and of their fields: address, address.zip."""
        return frozenset(paths_of(self.live))

    @property
    def known_paths(self) -> frozenset[str]:
        """Gives all paths that a row may hold: synced now, synced once, or waiting to be synced."""
        return frozenset(paths_of(column.in_source for column in self.columns))

    @property
    def waiting(self) -> tuple[VersionColumn, ...]:
        """Gives the columns on which a person has to decide, in whole or in part."""
        return tuple(column for column in self.columns if column.waits)

    def find(self, name: str) -> VersionColumn | None:
        """Finds a column by its name in the target; None if there is none."""
        return next((column for column in self.columns if column.name == name), None)

    def of_source(self, *sources: str) -> Iterator[VersionColumn]:
        """Yields the columns, in whatever state, that had one of these names in the source."""
        return (column for column in self.columns if column.source.name in sources)


def paths_of(columns: Iterable[VersionColumn], above: str = "") -> Iterator[str]:
    """Yields the paths of these columns and of the fields inside them, in their order."""
    for column in columns:
        yield f"{above}{column.name}"
        yield from paths_of(column.fields, f"{above}{column.name}.")


def _id_paths(recorded: Sequence[str], columns: Iterable[VersionColumn]) -> Iterator[str]:
    """Yields the paths that ids are made of, also for versions that the first releases recorded.

    They recorded a STRUCT without its fields, and hashed all fields that it had then.
    """
    by_name = {column.name: column for column in columns}
    for path in recorded:
        is_whole = any(other.startswith(f"{path}.") for other in recorded)
        if path in by_name and not is_whole:
            yield from paths_of((by_name[path],))
        else:
            yield path
