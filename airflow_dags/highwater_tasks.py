"""What the DAGs share: the command that a task runs, its parameters, and the operator.

Whoever deploys decides *how* highwater is started, by environment variables of the workers and the DAG processor;
whoever triggers a run decides *what* it works on, by parameters. Parameters reach Bash as environment variables only,
so no value is ever read as a command.

    HIGHWATER_COMMAND     the command; `highwater` unless set
    HIGHWATER_SUBMIT      spark-submit with its options, to run on a cluster; no cluster unless set
    HIGHWATER_PYTHON      with HIGHWATER_SUBMIT: the Python that highwater is installed in; `python3` unless set
    HIGHWATER_LOGS, HIGHWATER_LAKE, HIGHWATER_REPORTS      defaults of the parameters of these names
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import Asset, Context, Param
from highwater_lake import GOLD_TABLES, table_state
from highwater_lineage import lineage

DEFAULT_ARGS = {
    "owner": "highwater",
    "retries": 2,
    "retry_delay": timedelta(minutes=2),
    "retry_exponential_backoff": True,
    "max_retry_delay": timedelta(minutes=20),
    "execution_timeout": timedelta(hours=6),
}

GOLD_ASSETS = {
    name: Asset(name=f"highwater.gold.{name}", uri=f"x-highwater://gold/{name}", group="highwater")
    for name in GOLD_TABLES
}


def folder_param(name: str, default: str, description: str) -> Param:
    """A folder; absolute, because a Bash task starts in a folder of its own."""
    value = os.environ.get(f"HIGHWATER_{name.upper()}", default)
    return Param(value, type="string", pattern=r"^/[^\x00\n]*$", title=name, description=description)


def number_param(name: str, default: int, minimum: int, maximum: int, description: str) -> Param:
    """A whole number within bounds."""
    bounds = {"minimum": minimum, "maximum": maximum}
    return Param(default, type="integer", title=name, description=description, **bounds)


#: What all DAGs are made with.
SHARED = {
    "start_date": datetime(2026, 1, 1, tzinfo=UTC),
    "catchup": False,
    "max_active_runs": 1,
    "default_args": DEFAULT_ARGS,
    "tags": ["highwater"],
}
LAKE = folder_param("lake", "/var/lib/highwater/lake", "Folder of the Delta tables.")
REPORTS = folder_param("reports", "/var/lib/highwater/reports", "Folder that gets one folder per interval.")

#: A parameter's value as it is; Bash sees it as a variable.
_LAKE_VARIABLE, _LOGS_VARIABLE, _REPORT_VARIABLE = "HIGHWATER_LAKE", "HIGHWATER_LOGS", "HIGHWATER_OUT"
_VARIABLES = {_LAKE_VARIABLE: "{{ params.lake }}"}


def highwater(*arguments: str, passing: Sequence[int] = (0,)) -> str:
    """Bash that runs a verb of highwater.

    Args:
        arguments: verb and arguments in Bash's own words, so a variable is written `"$NAME"`.
        passing: exit codes with which the task succeeds.
    """
    words = " ".join(arguments)
    submit = shlex.split(os.environ.get("HIGHWATER_SUBMIT", ""))
    if submit:
        python = shlex.quote(os.environ.get("HIGHWATER_PYTHON", "python3"))
        # spark-submit wants a file; it starts the driver with the Python that has highwater.
        lines = [
            f"export PYSPARK_DRIVER_PYTHON={python}",
            f"entry=$({python} -c 'from highwater import __main__; print(__main__.__file__)')",
            f'{shlex.join(submit)} "$entry" {words} || code=$?',
        ]
    else:
        command = shlex.split(os.environ.get("HIGHWATER_COMMAND", "highwater"))
        lines = [f"{shlex.join(command)} {words} || code=$?"]
    codes = "|".join(map(str, passing))
    return "\n".join(["set -euo pipefail", "code=0", *lines, f"case $code in {codes}) exit 0 ;; *) exit $code ;; esac"])


class LakeOperator(BashOperator):
    """Bash that works on the lake; an outlet that is a gold table gets an event that says what is in it.

    Args:
        reads, writes: layers of the lake, for lineage.
    """

    def __init__(
        self,
        *,
        env: Mapping[str, str] | None = None,
        reads: Sequence[str] = (),
        writes: Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        # Exit code 99 would skip the task and all after it; none of highwater's means that.
        super().__init__(env=_VARIABLES | dict(env or {}), append_env=True, skip_on_exit_code=None, **kwargs)
        self.reads, self.writes = tuple(reads), tuple(writes)

    def get_openlineage_facets_on_start(self) -> Any:
        """Asked by Airflow's OpenLineage provider, if there is one."""
        return self._lineage(None)

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:
        """As on start, with what the report says of topics."""
        return self._lineage(self.env.get(_REPORT_VARIABLE))

    def get_openlineage_facets_on_failure(self, task_instance: Any) -> Any:
        """A task that failed wrote no report of its own."""
        return self._lineage(None)

    def _lineage(self, report: str | None) -> Any:
        logs = [self.env[_LOGS_VARIABLE]] if _LOGS_VARIABLE in self.env else []
        return lineage(self.reads, self.writes, self.env[_LAKE_VARIABLE], logs, report)

    def execute(self, context: Context) -> Any:
        result = super().execute(context)
        lake = Path(self.env[_LAKE_VARIABLE])
        for name, asset in GOLD_ASSETS.items():
            if asset in self.outlets:
                state = table_state(lake / "gold" / name)
                context["outlet_events"][asset].extra = {
                    "lake": str(lake),
                    "run_id": state.run_id,
                    "rows": state.rows,
                    "delta_version": state.version,
                }
        return result
