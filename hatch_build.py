"""Builds the wheel: one package, ``highwater``, with the folders of this repository below it.

In a checkout the folders are ``jobs``, ``pipelines`` and ``schemas``, and imports name them so; in the wheel imports
name ``highwater.jobs`` and so on, which this writes. Nothing else is changed: modules name each other by imports only
(`tests/unit/test_packaging.py`). An editable install is the checkout as it is.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # tests ask for `as_installed` only
    BuildHookInterface = object

PACKAGE = "highwater"
#: Packages whose modules import each other.
CODE = ("jobs", "pipelines", "schemas")
FOLDERS = (*CODE, "conf", "airflow_dags")
#: ``checkout``: names as in a checkout, for executors whose driver runs from one (`make executors`).
LAYOUT_VARIABLE = "HIGHWATER_LAYOUT"
_IMPORT = re.compile(rf"^(\s*(?:from|import) )(?=(?:{'|'.join(CODE)})\b)")


def as_installed(source: str, name: str = "<module>") -> str:
    """A module with its imports as they are in a wheel; its lines keep their numbers.

    Raises:
        ValueError: an import binds the name of a package, which is another one in a wheel.
    """
    lines = source.splitlines(keepends=True)
    for node in ast.walk(ast.parse(source, name)):
        if isinstance(node, ast.Import) and any(
            alias.asname is None and alias.name.split(".")[0] in CODE for alias in node.names
        ):
            raise ValueError(f"{name}:{node.lineno}: write `from x import y`: a wheel calls x otherwise")
        if isinstance(node, ast.Import | ast.ImportFrom):
            lines[node.lineno - 1] = _IMPORT.sub(rf"\1{PACKAGE}.", lines[node.lineno - 1])
    return "".join(lines)


def lay_out(root: Path, package: Path) -> None:
    """Fill a folder with the package that a wheel of a checkout holds."""
    leave = shutil.ignore_patterns("__pycache__", "*.pyc")
    for folder in (PACKAGE, *FOLDERS):
        target = package if folder == PACKAGE else package / folder
        shutil.copytree(root / folder, target, ignore=leave, dirs_exist_ok=True)
    for module in package.rglob("*.py"):
        module.write_text(as_installed(module.read_text(encoding="utf-8"), str(module)), encoding="utf-8")


class OnePackage(BuildHookInterface):  # type: ignore[type-arg, misc]
    """Called by hatchling for each wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Name what goes into the wheel beside the package `highwater`."""
        root = Path(self.root)
        if version == "editable":
            return
        if os.environ.get(LAYOUT_VARIABLE) == "checkout":
            build_data["force_include"] |= {str(root / folder): folder for folder in (PACKAGE, *FOLDERS)}
            return
        self._made = Path(tempfile.mkdtemp(prefix="highwater-wheel-"))
        lay_out(root, self._made)
        build_data["force_include"][str(self._made)] = PACKAGE

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Take away what was made for the wheel."""
        if hasattr(self, "_made"):
            shutil.rmtree(self._made)
