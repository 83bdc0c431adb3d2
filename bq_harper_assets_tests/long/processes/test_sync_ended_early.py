"""`bqh sync` in a process of its own: signalled twice, on a cluster, or left by its Java."""

import re
import signal
import threading
from pathlib import Path

import psutil
import pytest
from dagster import DagsterRunStatus

from bq_harper_assets.contract.project import Project
from bq_harper_assets.defs.runs.launch import project_instance
from bq_harper_assets_tests.cli.held_up import (
    AT_ONCE_S,
    BEGINS_WITHIN_S,
    ENDS_WITHIN_S,
    LEASE_S,
    Typed,
    is_writing,
    live_leases,
    log_of,
    run_of,
    typed_beside,
)
from bq_harper_assets_tests.defs.bqh_apart import bqh_apart
from bq_harper_assets_tests.fault_proxy import FaultProxy

pytestmark = [pytest.mark.harper, pytest.mark.bigquery, pytest.mark.spark]


def test_a_java_process_that_dies_is_replaced_at_once_and_the_run_comes_to_its_end(
    declared: Project, proxy: FaultProxy, never: threading.Event, tmp_path: Path
) -> None:
    [contract] = declared.tables
    with bqh_apart(tmp_path / "said", "sync", contract.id, lease_s=LEASE_S) as process:
        typed = Typed(process, tmp_path / "said")
        typed.wait_until(lambda: is_writing(proxy, contract))
        [java] = _java_of(typed)
        java.kill()
        typed.wait_until(lambda: "tries again in 0 s, 1 of 3: Spark's Java" in log_of(declared))
        # The lease of the first try is left to expire; the second has a new Spark.
        typed.wait_until(lambda: any(each.pid != java.pid for each in _java_of(typed)))
        proxy.heal()
        never.set()
        assert typed.ended_with(BEGINS_WITHIN_S) == 0, typed.said
    told = f"Spark's Java process is gone while it worked on {contract.id}, "
    assert told in log_of(declared)
    assert "until the lease has run out" not in typed.said  # it went on by itself
    assert "Connection refused" not in typed.said
    assert "Traceback" not in typed.said
    assert run_of(declared).status is DagsterRunStatus.SUCCESS


def test_a_second_signal_ends_the_process_at_once_and_the_next_sync_recovers(
    declared: Project, proxy: FaultProxy, never: threading.Event, tmp_path: Path
) -> None:
    [contract] = declared.tables
    log = tmp_path / "said"
    with bqh_apart(log, "sync", contract.id, lease_s=LEASE_S) as process:
        typed = Typed(process, log)
        typed.wait_until(lambda: is_writing(proxy, contract))
        children = psutil.Process(process.pid).children(recursive=True)
        assert children
        process.send_signal(signal.SIGINT)
        typed.wait_until(lambda: "stopping; a second signal ends it at once" in typed.said)
        process.send_signal(signal.SIGINT)
        # The first signal alone would take ten seconds: Harper does not answer.
        assert typed.ended_with(AT_ONCE_S) == 128 + signal.SIGINT, typed.said
    _, left = psutil.wait_procs(children, timeout=ENDS_WITHIN_S)
    assert left == []
    assert live_leases(declared)
    proxy.heal()
    never.set()
    with bqh_apart(tmp_path / "next", "sync", contract.id, lease_s=LEASE_S) as process:
        again = Typed(process, tmp_path / "next")
        assert again.ended_with(BEGINS_WITHIN_S) == 0, again.said
    assert re.search(r"^run \w{8} .*are taken up again", again.said, re.MULTILINE), again.said


def test_terminate_in_the_ui_ends_a_run_that_a_terminal_started_on_a_cluster(
    declared: Project, proxy: FaultProxy, never: threading.Event, tmp_path: Path
) -> None:
    profile = declared.root / "config" / "profiles" / "local.yaml"
    text = profile.read_text(encoding="utf-8")
    # Executors are processes of their own, as on other machines.
    profile.write_text(text.replace("local[*]", "local-cluster[1,1,1024]"), encoding="utf-8")
    [contract] = declared.tables
    with typed_beside("sync", contract.id, log=tmp_path / "said") as typed:
        typed.wait_until(lambda: is_writing(proxy, contract))
        with project_instance(declared.root) as instance:
            [run] = instance.get_runs()
            assert instance.run_coordinator.cancel_run(run.run_id)  # as the button does
        assert typed.ended_with() == 128 + signal.SIGTERM, typed.said
    assert "stopped: 0 of" in typed.said
    assert run_of(declared).status is DagsterRunStatus.CANCELED


def _java_of(typed: Typed) -> list[psutil.Process]:
    children = psutil.Process(typed.process.pid).children()
    return [child for child in children if child.name() == "java"]
