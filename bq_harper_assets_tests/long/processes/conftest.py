"""`bqh` and Dagster in processes of their own; requests to Harper can be held up."""

from bq_harper_assets_tests.cli.conftest import project, proxy, tables
from bq_harper_assets_tests.cli.held_up import declared, never

__all__ = ["declared", "never", "project", "proxy", "tables"]
