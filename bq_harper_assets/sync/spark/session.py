"""This process has one Spark session, and starts a new one if its Java process has ended."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_LOG_BYTES = 5_000_000
_PRIVATE = 0o600


def session(settings: Mapping[str, str], log: Path) -> "SparkSession":
    """Returns the running session or a new one; the output of Java and Spark goes to `log`."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    if is_gone():
        _forget()
    if "spark.remote" not in settings and SparkContext._gateway is None:
        conf = SparkConf()
        for name, value in settings.items():
            conf.set(name, value)
        with _opened(log) as output:
            # Java gets its own process session: Ctrl-C is for the driver, which cancels the jobs.
            options = {"stderr": output, "start_new_session": True}
            gateway = launch_gateway(conf, options)  # type: ignore[no-untyped-call]
        SparkContext._ensure_initialized(gateway=gateway)
    return SparkSession.builder.config(map=dict(settings)).getOrCreate()


def is_gone(within_s: float = 0.0) -> bool:
    """Says whether the Java process of this process's Spark has ended, or ends within that time."""
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    process = getattr(gateway, "proc", None)
    if process is None:
        return False
    with suppress(subprocess.TimeoutExpired):
        process.wait(within_s)
    return process.poll() is not None


def _forget() -> None:
    """Clears all that PySpark keeps of a Java process; otherwise it would go on using it."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession, SQLContext

    context = SparkContext._active_spark_context
    if context is not None:
        context._jsc = None
        with suppress(Exception):
            context._accumulatorServer.shutdown()
    SparkContext._active_spark_context = None
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkSession._instantiatedSession = None
    SparkSession._activeSession = None
    SQLContext._instantiatedContext = None


@contextmanager
def _opened(log: Path) -> Iterator[IO[bytes] | int]:
    """Opens the log to append, or empty once it is long; DEVNULL if it cannot be written."""
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        is_long = log.exists() and log.stat().st_size > MOST_LOG_BYTES
        file = log.open("wb" if is_long else "ab")
        log.chmod(_PRIVATE)
    except OSError:
        yield subprocess.DEVNULL
        return
    with file:
        yield file
