"""Builds the wheel: one package, ``highwater``, with the folders of this repository below it.

`highwater/` has links to the folders of code, so that a module has the same name in a checkout, an editable install and
a wheel. The wheel has files in their place, and the folders of data beside them.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # tests ask for `lay_out` only
    BuildHookInterface = object

PACKAGE = "highwater"
#: Folders that `highwater/` links to.
CODE = ("jobs", "pipelines", "schemas")
FOLDERS = (*CODE, "conf", "airflow_dags")


def lay_out(root: Path, package: Path) -> None:
    """Fill a folder with the package that a wheel of a checkout holds."""
    leave = shutil.ignore_patterns("__pycache__", "*.pyc", *CODE)
    shutil.copytree(root / PACKAGE, package, ignore=leave, dirs_exist_ok=True)
    for folder in FOLDERS:
        shutil.copytree(root / folder, package / folder, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))


class OnePackage(BuildHookInterface):  # type: ignore[type-arg, misc]
    """Called by hatchling for each wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name what goes into the wheel."""
        if version == "editable":
            return
        root = Path(self.root)
        modules = {str(file): f"{PACKAGE}/{file.name}" for file in (root / PACKAGE).glob("*.py")}
        folders = {str(root / folder): f"{PACKAGE}/{folder}" for folder in FOLDERS}
        build_data["force_include"] |= modules | folders
