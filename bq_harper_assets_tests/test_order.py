"""Files whose tests need servers are begun first."""

import re
import subprocess
import sys

from bq_harper_assets_tests.conftest import PROJECT_ROOT

# The second needs PostgreSQL for some of its tests.
SOME = ["contract/test_secrets.py", "ledger/test_brief_question.py", "maritime/test_chance.py"]


def test_files_that_need_servers_come_first_and_others_stay_as_they_were_asked_for() -> None:
    tests = [f"bq_harper_assets_tests/{name}" for name in SOME]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", *tests],
        cwd=PROJECT_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    told = re.findall(r"bq_harper_assets_tests/(\S+\.py)::", ended.stdout)
    assert list(dict.fromkeys(told)) == [SOME[1], SOME[0], SOME[2]]
