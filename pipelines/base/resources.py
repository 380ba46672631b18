"""Where the files of ``conf/`` are: package data of the wheel, or the repository's folder in a checkout."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from pipelines.base.errors import EnvironmentProblem


def conf_file(name: str) -> Path:
    """Path of one file of ``conf/``.

    A wheel carries the folder as ``pipelines/_conf``; an editable install has no such folder and reads the
    repository's own. A real path is needed, not just its text: the JVM reads ``log4j2.properties`` itself.

    Raises:
        EnvironmentProblem: the file is in neither place, so the installation is broken.
    """
    packaged = Path(str(files("pipelines"))) / "_conf" / name
    checkout = Path(__file__).resolve().parents[2] / "conf" / name
    for candidate in (packaged, checkout):
        if candidate.is_file():
            return candidate
    raise EnvironmentProblem(f"the installation lacks its own file conf/{name}", "install highwater again")
