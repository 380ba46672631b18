"""Shared parts of the DAGs: the command of a task, its parameters, and the operator.

The deployment sets *how* highwater is started, by environment variables of the workers and the DAG processor. The
person who triggers a run sets *what* it works on, by parameters. Parameters reach Bash as environment variables only,
so no value is ever read as a command.

    HIGHWATER_COMMAND     the command; `highwater` unless set
    HIGHWATER_SUBMIT      spark-submit with its options, to run on a cluster; no cluster unless set
    HIGHWATER_PYTHON      with HIGHWATER_SUBMIT: the Python that highwater is installed in; `python3` unless set
    HIGHWATER_LOGS, HIGHWATER_LAKE, HIGHWATER_REPORTS      defaults of the parameters of these names
    HIGHWATER_POOL        pool of one slot for all tasks that write the lake; no pool unless set
    HIGHWATER_ON_FAILURE  module:function, called with Airflow's context when a task has failed for good
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from airflow.providers.standard.operators.bash import BashOperator
from highwater_compat import (
    AirflowException,
    AirflowFailException,
    AirflowSkipException,
    BaseSensorOperator,
    Context,
    Param,
    make_asset,
)
from highwater_lake import GOLD_TABLES, read_state
from highwater_lineage import build_lineage


def call_on_failure(context: Context) -> None:
    """Call what the deployment names, if it names anything."""
    module, _, function = os.environ.get("HIGHWATER_ON_FAILURE", "").partition(":")
    if module:
        getattr(import_module(module), function)(context)


DEFAULT_ARGS = {
    "owner": "highwater",
    "on_failure_callback": call_on_failure,
    "retries": 2,
    "retry_delay": timedelta(minutes=2),
    "retry_exponential_backoff": True,
    "max_retry_delay": timedelta(minutes=20),
    "execution_timeout": timedelta(hours=6),
}
if pool := os.environ.get("HIGHWATER_POOL"):
    # A lake has one writer: who waits for it is seen in the pool, rather than as a task that runs and waits.
    DEFAULT_ARGS["pool"] = pool

GOLD_ASSETS = {
    name: make_asset(f"highwater.gold.{name}", f"x-highwater://gold/{name}", "highwater") for name in GOLD_TABLES
}


def make_folder_param(name: str, default: str, description: str) -> Param:
    """Return a parameter for a folder; absolute, because a Bash task starts in a folder of its own."""
    value = os.environ.get(f"HIGHWATER_{name.upper()}", default)
    return Param(value, type="string", pattern=r"^/[^\x00\n]*$", title=name, description=description)


def make_number_param(name: str, default: int, minimum: int, maximum: int, description: str) -> Param:
    """Return a parameter for a whole number within bounds."""
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
LAKE = make_folder_param("lake", "/var/lib/highwater/lake", "Folder of the Delta tables.")
REPORTS = make_folder_param("reports", "/var/lib/highwater/reports", "Folder that gets one folder per interval.")

#: A parameter's value as it is; Bash sees it as a variable.
#: The file that gets what a verb says.
_SAID_VARIABLE = "HIGHWATER_SAID"
_LAKE_VARIABLE, _LOGS_VARIABLE, _REPORT_VARIABLE = "HIGHWATER_LAKE", "HIGHWATER_LOGS", "HIGHWATER_OUT"
_VARIABLES = {_LAKE_VARIABLE: "{{ params.lake }}"}


#: What a verb says is in the task's log, and for the operator to read.
_KEPT = f'2>&1 | tee "${_SAID_VARIABLE}" || code=${{PIPESTATUS[0]}}'
_EXIT_CODE = re.compile(r"exit code (\d+)")
#: Exit codes that the same logs give again: verdicts.
_VERDICTS = (1, 3)
_VERDICT_LINE = re.compile(r"(?:gate|verdict): (clean|violated|inconclusive)\b")
_INCONCLUSIVE = "inconclusive"


def build_command(*arguments: str, passing: Sequence[int] = (0,)) -> str:
    """Return the Bash command that runs a verb of highwater.

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
            f'{shlex.join(submit)} "$entry" {words} {_KEPT}',
        ]
    else:
        command = shlex.split(os.environ.get("HIGHWATER_COMMAND", "highwater"))
        lines = [f"{shlex.join(command)} {words} {_KEPT}"]
    codes = "|".join(map(str, passing))
    return "\n".join(["set -euo pipefail", "code=0", *lines, f"case $code in {codes}) exit 0 ;; *) exit $code ;; esac"])


def find_verdict(lines: Sequence[str]) -> str | None:
    """Return the verdict of a gate or a report, without the class in parentheses. None for other verbs."""
    match = next(filter(None, map(_VERDICT_LINE.match, lines)), None)
    return None if match is None else match[1]


def find_worst(lines: Sequence[str]) -> str | None:
    """Return the worst result of a gate: a broken guarantee, else what happened, else why nothing is decided."""
    starts = ("violated: ", "happened: ", "stale: ", "inconclusive: ")
    return next((line for start in starts for line in lines if line.startswith(start)), None)


def summarize(lines: Sequence[str]) -> str:
    """Return one line for the person who is called: verdict and worst finding, or the command's own error."""
    parts = (find_verdict(lines), find_worst(lines))
    complaints = [line.removeprefix("highwater: ") for line in lines if line.startswith("highwater: ")]
    return "; ".join(part for part in parts if part) or (complaints[-1] if complaints else "")


def _read_lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8", errors="replace").splitlines() if file.is_file() else []


def _publish(context: Context, lines: Sequence[str]) -> None:
    for key, value in (("verdict", find_verdict(lines)), ("worst", find_worst(lines))):
        if value is not None:
            context["ti"].xcom_push(key=key, value=value)


class NewLogs(BaseSensorOperator):
    """Waits until a file of the logs is newer than the interval, for some minutes at most: the gate judges staleness.

    Args:
        logs, end, minutes: templates of the folder, of the interval's end, and of how long to wait after it.
    """

    template_fields = ("logs", "end", "minutes")

    def __init__(self, *, logs: str, end: str, minutes: str, **kwargs: Any) -> None:
        super().__init__(mode="reschedule", poke_interval=60, **kwargs)
        self.logs, self.end, self.minutes = logs, end, minutes

    def poke(self, context: Context) -> bool:
        """Return whether the wait is over."""
        end = datetime.fromisoformat(self.end)
        if datetime.now(UTC) >= end + timedelta(minutes=float(self.minutes)):
            return True
        return any(path.stat().st_mtime >= end.timestamp() for path in Path(self.logs).rglob("*") if path.is_file())


class LakeOperator(BashOperator):
    """Bash that works on the lake; an outlet that is a gold table gets an event that says what is in it.

    Args:
        reads, writes: layers of the lake, for lineage.
        doubts: tasks with a verdict. Where one is inconclusive, or this one is, this task is skipped instead of green.
    """

    def __init__(
        self,
        *,
        env: Mapping[str, str] | None = None,
        reads: Sequence[str] = (),
        writes: Sequence[str] = (),
        doubts: Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        # Exit code 99 would skip the task and all after it; none of highwater's means that.
        super().__init__(env=_VARIABLES | dict(env or {}), append_env=True, skip_on_exit_code=None, **kwargs)
        self.reads, self.writes, self.doubts = tuple(reads), tuple(writes), tuple(doubts)

    def get_openlineage_facets_on_start(self) -> Any:
        """Return facets for Airflow's OpenLineage provider at the start of a task."""
        return self._build_lineage(None)

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:
        """Return facets of a finished task, with the results of its report by topic."""
        return self._build_lineage(self.env.get(_REPORT_VARIABLE))

    def get_openlineage_facets_on_failure(self, task_instance: Any) -> Any:
        """Return facets of a failed task, which wrote no report of its own."""
        return self._build_lineage(None)

    def _build_lineage(self, report: str | None) -> Any:
        logs = [self.env[_LOGS_VARIABLE]] if _LOGS_VARIABLE in self.env else []
        return build_lineage(self.reads, self.writes, self.env[_LAKE_VARIABLE], logs, report)

    def execute(self, context: Context) -> Any:
        """Run the verb. Its verdict and worst finding go to XCom, and into the exception if it fails.

        Raises:
            AirflowFailException: it failed, and another try would fail as well.
            AirflowSkipException: it passed, and its verdict or the verdict of a task in `doubts` is inconclusive.
        """
        with TemporaryDirectory(prefix="highwater-") as scratch:
            file = Path(scratch, "said")
            self.env = {**(self.env or {}), _SAID_VARIABLE: str(file)}
            try:
                result = super().execute(context)
            except AirflowException as error:
                lines = _read_lines(file)
                _publish(context, lines)
                match = _EXIT_CODE.search(str(error))
                code = int(match[1]) if match else -1
                problem = f"{self.task_id}: {summarize(lines) or str(error)} (exit code {code})"
                raise (AirflowFailException if code in _VERDICTS else AirflowException)(problem) from None
            lines = _read_lines(file)
            _publish(context, lines)
            if self.doubts:
                told = [context["ti"].xcom_pull(task_ids=task, key="verdict") for task in self.doubts]
                if _INCONCLUSIVE in (find_verdict(lines), *told):
                    of_others = "".join(f"; {task}: {said}" for task, said in zip(self.doubts, told, strict=True))
                    raise AirflowSkipException(f"{self.task_id}: {summarize(lines)}{of_others}")
        lake = Path(self.env[_LAKE_VARIABLE])
        for name, outlet in GOLD_ASSETS.items():
            if outlet in self.outlets:
                state = read_state(lake / "gold" / name)
                context["outlet_events"][outlet].extra = {
                    "lake": str(lake),
                    "run_id": state.run_id,
                    "rows": state.rows,
                    "delta_version": state.version,
                }
        return result
