"""What a command is told of the table that it asks about."""

import pytest

from bq_harper_assets.cli.runs.asked_table import AskedTable
from bq_harper_assets.ledger.ledger import open_ledger
from bq_harper_assets.stores.bigquery.table_ref import TableRef
from bq_harper_assets.sync.errors import NoSuchVersion
from bq_harper_assets_tests.temporary_project import TemporaryProject, hours_ago, table


def test_a_version_that_is_named_of_a_table_never_synced_is_refused_and_not_planned(
    serverless: TemporaryProject,
) -> None:
    project = serverless.declare(table(TableRef("p", "d", "orders"), hours_ago(3)))
    with open_ledger(project.ledger.url) as ledger:
        asked = AskedTable(project, project.tables[0], ledger)
        with pytest.raises(NoSuchVersion, match="its first sync records one"):
            asked.version(3)
