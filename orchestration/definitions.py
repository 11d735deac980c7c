"""All Dagster definitions: each topic is a module in `assets/`, loaded automatically."""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from config import logging, settings
from orchestration import console
from orchestration.resources import resources


@dg.definitions
def defs() -> dg.Definitions:
    """Return the definitions of code location `presage`."""
    logging.configure("code-server")
    console.install()
    return dg.Definitions.merge(
        dg.load_from_defs_folder(path_within_project=Path(__file__).parent),
        dg.Definitions(resources=resources(settings.get()), executor=dg.in_process_executor),
    )
