"""The real servers, started for a benchmark in a folder of their own and stopped after it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from benchmarks.sink import ROOT
from bq_harper_assets.contract.settings.addresses import StackAddresses
from bq_harper_assets.contract.settings.root import local_folder
from bq_harper_assets.local.stack import SERVERS, LocalStack


@contextmanager
def stack(
    name: str, servers: Sequence[str] = SERVERS, *, threads: int | None = None
) -> Iterator[StackAddresses]:
    """Empty at the start; two benchmarks may run at once."""
    folder = local_folder(ROOT) / f"benchmark-{name}"
    local = LocalStack(ROOT, folder, preferred={}, persistent=False, threads=threads)
    local.purge(lambda line: None)
    try:
        yield local.up(print, servers=servers)
    finally:
        local.purge(lambda line: None)
