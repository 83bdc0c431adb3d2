"""Settings that belong together: no password, project or port of one server goes to another."""

from dataclasses import replace

from bq_harper_assets.contract.loading.located import Expanded, Located, Place
from bq_harper_assets.contract.loading.variables import DOTENV_FILE
from bq_harper_assets.contract.settings.layers import (
    ARGUMENT,
    ENVIRONMENT,
    STACK,
    Layers,
    source_text,
)
from bq_harper_assets.contract.settings.urls import EMULATOR_URL, host_of

STORAGE_PORT = 9060
_EXCLUSIVE = {"spark.remote": "spark.master", "spark.master": "spark.remote"}


def usable(layers: Layers) -> Layers:
    """The layers without what belongs to a server that another setting has replaced."""
    stack = dict(layers.stack)
    if not _same(layers.winner("bigquery.endpoint"), stack.get("bigquery.endpoint")):
        stack.pop("bigquery.project", None)
        stack.pop("bigquery.storageEndpoint", None)
    same_url = _same(layers.winner("harper.url"), stack.get("harper.url"))
    if not same_url or not _same(layers.winner("harper.user"), stack.get("harper.user")):
        stack.pop("harper.password", None)
    if not same_url:
        stack.pop("harper.user", None)
    # Naming a Spark in a command takes the file's other one out.
    dropped = {_EXCLUSIVE[name] for name in layers.arguments if name in _EXCLUSIVE}
    profile = {name: entry for name, entry in layers.profile.items() if name not in dropped}
    return _with_storage(replace(layers, stack=stack, profile=profile))


def _with_storage(layers: Layers) -> Layers:
    endpoint = layers.winner("bigquery.endpoint")
    storage = layers.winner("bigquery.storageEndpoint")
    if endpoint is None or (storage is not None and _rank(storage) <= _rank(endpoint)):
        return layers
    try:
        url = EMULATOR_URL.parse(endpoint.value)
    except ValueError:
        return layers  # told where it is checked
    text = f"{host_of(url)}:{STORAGE_PORT}"
    place = Place(f"{source_text(endpoint)} (same host, port {STORAGE_PORT})")
    return replace(
        layers, derived={"bigquery.storageEndpoint": Located(place, Expanded(text), text)}
    )


def _same(entry: Located | None, other: Located | None) -> bool:
    return entry is not None and other is not None and str(entry.value).rstrip("/") == other.value


def _rank(entry: Located) -> int:
    return {ARGUMENT: 0, ENVIRONMENT: 1, DOTENV_FILE: 1, STACK: 3}.get(entry.place.file, 2)
