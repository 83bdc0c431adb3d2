"""The pace says how much a table requests at once, and how soon it is checked again."""

from datetime import timedelta

from bq_harper_assets.contract.table import Sync, TableContract
from bq_harper_assets.sync.phases import Phase

# Each run costs a start and a lease, so a table that is far behind takes much at once.
WINDOWS_PER_RUN = {Phase.INITIAL: 96, Phase.CATCHUP: 24, Phase.STEADY: 8}
NEWEST_WINDOWS = 4  # these do not wait for a longer backlog
ASK_AGAIN_AFTER = timedelta(minutes=5)  # for what is still needed though its run has ended
FAILED_WAIT = timedelta(minutes=30)  # how long failed windows wait behind others
LIVE_RUN = timedelta(minutes=15)

_SOONEST = timedelta(seconds=5)  # Dagster's own interval
_LONGEST_BETWEEN_LOOKS = timedelta(hours=1)


def poll_delay(phase: Phase, sync: Sync) -> timedelta:
    """Returns the time until the ledger is polled again; a table that is behind waits less."""
    steady = timedelta(milliseconds=sync.poll_interval)
    return steady if phase is Phase.STEADY else min(steady, max(_SOONEST, steady / 3))


def tick_seconds(sync: Sync) -> int:
    """Returns a sensor's interval, that of the fastest phase: Dagster fixes it at definition."""
    hastiest = max(_SOONEST, poll_delay(Phase.INITIAL, sync))
    return int(hastiest.total_seconds())


def look_delay(contract: TableContract) -> timedelta:
    """Returns the time until the source is compared again, which may be billed."""
    return min(contract.window, _LONGEST_BETWEEN_LOOKS)
