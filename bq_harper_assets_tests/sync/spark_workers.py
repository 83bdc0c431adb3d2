"""Spark's Python processes, found by whom they talk to."""

from contextlib import suppress

import psutil

from bq_harper_assets_tests.fault_proxy import FaultProxy


def workers_at(proxy: FaultProxy) -> list[psutil.Process]:
    """Those that have a connection to the proxy."""
    port = int(proxy.url.rpartition(":")[2])
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # one that has just ended
            if "pyspark.daemon" in " ".join(process.cmdline()) and any(
                line.raddr and line.raddr.port == port for line in process.net_connections("tcp")
            ):
                found.append(process)
    return found
