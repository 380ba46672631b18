"""A real Airflow with its SQLite default, in a folder that goes away.

Airflow has an environment of its own: `make test-airflow`. Elsewhere these tests skip themselves. Airflow reads its
settings as it is imported, so no module here imports it before this fixture has run.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
DAGS = ROOT / "airflow_dags"
#: The command of this checkout, unless another one is to be tested.
COMMAND = os.environ.get("HIGHWATER_COMMAND", shlex.join([str(ROOT / ".venv/bin/python"), "-m", "highwater.jobs.cli"]))


@pytest.fixture(scope="session", autouse=True)
def airflow_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Airflow's folder, with a metadata database that knows both DAGs."""
    if find_spec("airflow") is None:
        pytest.skip("Airflow has an environment of its own: make test-airflow")
    home = tmp_path_factory.mktemp("airflow")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("AIRFLOW_", "HIGHWATER_", "OPENLINEAGE"))]:
            patch.delenv(name)
        patch.setenv("AIRFLOW_HOME", str(home))
        patch.setenv("AIRFLOW__CORE__DAGS_FOLDER", str(DAGS))
        patch.setenv("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.syspath_prepend(str(DAGS))
        from airflow.utils.db import initdb

        initdb()
        yield home


@pytest.fixture(scope="session")
def dag_bag() -> Callable[[], Any]:
    """Reads the DAG files anew, under the environment as it is then."""

    def read() -> Any:
        from airflow.dag_processing.dagbag import DagBag

        for module in ("highwater_compat", "highwater_tasks", "highwater_lake", "highwater_lineage"):
            sys.modules.pop(module, None)
        return DagBag(dag_folder=str(DAGS))

    return read


@dataclass
class Deployment:
    """Folders of one deployment and how its DAGs are run."""

    folder: Path
    dag_bag: Callable[[], Any]

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @property
    def lake(self) -> Path:
        return self.folder / "lake"

    @property
    def reports(self) -> Path:
        return self.folder / "reports"

    def use(self, patch: pytest.MonkeyPatch) -> None:
        """Make these folders and this checkout's command what the environment names."""
        for name, value in (("LOGS", self.logs), ("LAKE", self.lake), ("REPORTS", self.reports)):
            patch.setenv(f"HIGHWATER_{name}", str(value))
        patch.setenv("HIGHWATER_COMMAND", COMMAND)

    def run(self, dag_id: str, hour: datetime, **params: Any) -> Any:
        """Run a DAG for the last interval that ended by `hour`; gives the DagRun."""
        bag = self.dag_bag()
        assert bag.import_errors == {}
        return bag.dags[dag_id].test(logical_date=hour, run_conf=params)


@pytest.fixture
def deployment(tmp_path: Path, dag_bag: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> Deployment:
    """Folders of its own, which the environment names."""
    made = Deployment(tmp_path, dag_bag)
    made.use(monkeypatch)
    return made


def states(run: Any) -> dict[str, str]:
    """State of each task of a DagRun."""
    return {instance.task_id: str(instance.state) for instance in run.get_task_instances()}
