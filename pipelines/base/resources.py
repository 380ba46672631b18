"""Paths of the files of ``conf/``, next to the code in a checkout and in a wheel."""

from __future__ import annotations

from pathlib import Path

from highwater.pipelines.base.errors import EnvironmentProblem


def list_dag_files() -> list[Path]:
    """Return the Python files to install for Airflow: DAGs and their shared code."""
    return sorted((Path(__file__).resolve().parents[2] / "airflow_dags").glob("*.py"))


def find_conf_file(name: str) -> Path:
    """Return the path of one file of ``conf/``.

    A path is needed, not just the text: the JVM reads ``log4j2.properties`` itself.

    Raises:
        EnvironmentProblem: the file is missing, so the installation is broken.
    """
    path = Path(__file__).resolve().parents[2] / "conf" / name
    if path.is_file():
        return path
    raise EnvironmentProblem(f"the installation lacks its own file conf/{name}", "install highwater again")
