"""The phase of a table follows from its lag, and decides how much is sent at once."""

from datetime import timedelta
from enum import StrEnum

from bq_harper_assets.contract.table import Sync


class Phase(StrEnum):
    """A phase says whether a table is far behind, nearly there, or keeping up."""

    INITIAL = "initial"
    CATCHUP = "catchup"
    STEADY = "steady"


def phase_of(lag: timedelta, sync: Sync) -> Phase:
    """Returns the phase for a lag; one of exactly a threshold belongs to the calmer phase."""
    if lag > timedelta(seconds=sync.catchup_threshold):
        return Phase.INITIAL
    if lag > timedelta(seconds=sync.steady_threshold):
        return Phase.CATCHUP
    return Phase.STEADY


def rows_per_request(phase: Phase, sync: Sync) -> int:
    """Returns the most rows that one request may carry in this phase."""
    return {
        Phase.INITIAL: sync.initial_batch_size,
        Phase.CATCHUP: sync.catchup_batch_size,
        Phase.STEADY: sync.steady_batch_size,
    }[phase]
