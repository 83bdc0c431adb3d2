"""Contracts in, Dagster Definitions out; nothing else."""

import os
from pathlib import Path

from bq_harper_assets.contract.settings.root import find_project_root
from bq_harper_assets.defs.build import build_definitions

defs = build_definitions(find_project_root(os.environ, Path.cwd()))
