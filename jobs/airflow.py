"""``highwater airflow install``: the DAGs, into Airflow's folder of DAGs."""

from __future__ import annotations

import shutil
from pathlib import Path

from highwater.jobs.exit_codes import ExitCode
from highwater.pipelines.base.console import Console
from highwater.pipelines.base.errors import EnvironmentProblem, InputError
from highwater.pipelines.base.resources import list_dag_files


def install(console: Console, folder: Path) -> ExitCode:
    """Copy the DAGs and their modules into `folder`. Files of an earlier version are replaced.

    Raises:
        InputError: the folder does not exist.
        EnvironmentProblem: the folder cannot be written.
    """
    if not folder.is_dir():
        raise InputError(
            folder, "is not a folder", "name Airflow's folder of DAGs: `airflow config get-value core dags_folder`"
        )
    for file in list_dag_files():
        try:
            shutil.copyfile(file, folder / file.name)
        except OSError as error:
            problem = f"{folder} cannot be written ({error.strerror})"
            raise EnvironmentProblem(problem, "check its permissions") from None
        console.result(f"wrote {folder / file.name}")
    console.note(
        "next: `airflow pools set highwater_lake 1 'one writer'`, and in the environment of DAG processor and workers "
        "HIGHWATER_POOL=highwater_lake, HIGHWATER_COMMAND, HIGHWATER_LOGS, HIGHWATER_LAKE, HIGHWATER_REPORTS "
        "(docs/airflow.md)"
    )
    return ExitCode.CLEAN
