"""Contracts in, Dagster Definitions out; nothing else."""

import os
from pathlib import Path

from dagster import Definitions

from bq_harper_assets.contract.project import load_project
from bq_harper_assets.contract.root import find_project_root
from bq_harper_assets.defs.sample_data import SAMPLE_DATA_KEYS, build_sample_data
from bq_harper_assets.defs.sources import build_source, source_key


def build_definitions(root: Path) -> Definitions:
    """All that the project declares; the local profile can also make its own sample data."""
    project = load_project(root)
    made_here = SAMPLE_DATA_KEYS if project.profile_name == "local" else frozenset()
    sources = [
        build_source(table) for table in project.tables if source_key(table) not in made_here
    ]
    sample_data = build_sample_data(root) if made_here else Definitions()
    return Definitions.merge(Definitions(assets=sources), sample_data)


defs = build_definitions(find_project_root(os.environ, Path.cwd()))
