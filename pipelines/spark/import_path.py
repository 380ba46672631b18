"""Where the driver and its Python workers import modules from. Pure, but for looking into folders."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final, NamedTuple

_PATH: Final = "PYTHONPATH"
#: With it Python does not search the current folder, where a module of the same name may be. Spark starts workers with
#: `-m`, which searches that folder first.
SAFE_PATH: Final = {"PYTHONSAFEPATH": "1"}


def build_worker_environment(environment: Mapping[str, str], path: Sequence[str]) -> dict[str, str]:
    """Return environment variables with which workers import the driver's modules, and nothing from the current folder.

    Args:
        environment: of the driver.
        path: ``sys.path`` of the driver. `python -m highwater` in a checkout has the package only in its first entry.
    """
    root = Path(__file__).parents[__name__.count(".")].resolve()
    first, *others = (Path(entry).resolve() for entry in path)
    if sys.flags.safe_path or root != first or root in others:
        return dict(SAFE_PATH)
    return SAFE_PATH | {_PATH: os.pathsep.join(filter(None, (str(root), environment.get(_PATH))))}


class Shadow(NamedTuple):
    """A module that hides an installed one of the same name."""

    name: str
    module: str  #: file or folder that is imported
    hidden: str  #: file or folder that is installed


def find_shadows(path: Sequence[str]) -> Iterator[Shadow]:
    """Yield modules that hide others, because their folder precedes the standard library in ``sys.path``."""
    installed = Path(sysconfig.get_path("stdlib")).resolve()
    folders = [Path(entry).resolve() for entry in path]
    before = folders.index(installed) if installed in folders else len(folders)
    for number, folder in enumerate(folders[:before]):
        for name in _list_modules(folder):
            module, hidden = _place(name, folders[number : number + 1]), _place(name, folders[number + 1 :])
            if module and hidden and module != hidden:
                yield Shadow(name, module, hidden)


def _list_modules(folder: Path) -> list[str]:
    if not folder.is_dir():
        return []
    regular = (entry for entry in folder.iterdir() if entry.suffix == ".py" or (entry / "__init__.py").is_file())
    return sorted(entry.stem for entry in regular)


def _place(name: str, folders: Sequence[Path]) -> str | None:
    """Return the file of a module, or the folder of a package. None if the folders have no such module."""
    spec = PathFinder.find_spec(name, [str(folder) for folder in folders])
    return None if spec is None or spec.origin is None else spec.origin.removesuffix("/__init__.py")
