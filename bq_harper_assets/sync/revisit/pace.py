"""How much a table asks for at once, and how soon it is looked at again."""

from datetime import timedelta

from bq_harper_assets.contract.table import Sync, TableContract
from bq_harper_assets.sync.phases import Phase

# A run costs its start and a lease: whoever is far behind takes much at once.
WINDOWS_PER_RUN = {Phase.INITIAL: 96, Phase.CATCHUP: 24, Phase.STEADY: 8}
NEWEST_WINDOWS = 4  # that are not made to wait for a longer backlog
ASK_AGAIN_AFTER = timedelta(minutes=5)  # for what is still needed though its run has ended
FAILED_WAIT = timedelta(minutes=30)  # behind windows whose last run did not fail
LIVE_RUN = timedelta(minutes=15)

_SOONEST = timedelta(seconds=5)  # Dagster's own rhythm
_LONGEST_BETWEEN_LOOKS = timedelta(hours=1)


def poll_delay(phase: Phase, sync: Sync) -> timedelta:
    """Until the ledger is asked again what is missing; a table that is behind waits less."""
    steady = timedelta(milliseconds=sync.poll_interval)
    return steady if phase is Phase.STEADY else min(steady, max(_SOONEST, steady / 3))


def tick_seconds(sync: Sync) -> int:
    """Dagster fixes a sensor's rhythm when it is defined, so it is that of the hastiest phase."""
    hastiest = max(_SOONEST, poll_delay(Phase.INITIAL, sync))
    return int(hastiest.total_seconds())


def look_delay(contract: TableContract) -> timedelta:
    """Until the source is compared again: unlike a poll this reads rows, which BigQuery bills."""
    return min(contract.window, _LONGEST_BETWEEN_LOOKS)
