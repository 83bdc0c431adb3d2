"""`bqh` in a process of its own, that can be killed: `python -m ... SECONDS sync orders`.

Its leases last so many seconds, so that a test need not wait three minutes for them; with 0 they
last as long as a user's.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from bq_harper_assets.sync.lease import keeper
from bq_harper_assets.sync.lease.keeper import LeaseTimes
from bq_harper_assets.sync.revisit import pace


def hurry(seconds: float) -> None:
    """Leases last so long, and sensors ask again so soon: of what this process imports later."""
    pace.ASK_AGAIN_AFTER = timedelta(seconds=seconds)

    def short_times(spark_master: str, patience: timedelta = timedelta(0)) -> LeaseTimes:
        return LeaseTimes(
            ttl=timedelta(seconds=seconds),
            effect_within=timedelta(seconds=seconds / 4),
            patience=patience,
        )

    keeper.lease_times = short_times


@contextmanager
def bqh_apart(
    log: Path, *arguments: str, lease_s: float | None = 20.0
) -> "Iterator[subprocess.Popen[bytes]]":
    """The command at work, with this environment; killed at the end of the block if it still is.

    Without `lease_s` its leases last as long as a user's.
    """
    command = [sys.executable, "-m", __name__, str(lease_s or 0), *arguments]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env=os.environ, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    if lease_seconds := float(sys.argv[1]):
        hurry(lease_seconds)
    sys.argv = ["bqh", *sys.argv[2:]]
    from bq_harper_assets.cli.main import main  # after the leases were shortened

    main()
