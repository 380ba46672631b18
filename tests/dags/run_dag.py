"""Runs a DAG for the last interval that ended by an hour, in a process of its own.

    run_dag.py DAG_ID HOUR

The provider of OpenLineage looks once in a process whether it has a transport, so runs with and without one cannot
share a process.
"""

import sys
from datetime import datetime
from pathlib import Path

DAGS = Path(__file__).resolve().parents[2] / "airflow_dags"


def main(dag_id: str, hour: str) -> None:
    sys.path.insert(0, str(DAGS))
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag(dag_folder=str(DAGS))
    if bag.import_errors:
        sys.exit(str(bag.import_errors))
    bag.dags[dag_id].test(logical_date=datetime.fromisoformat(hour))


if __name__ == "__main__":
    main(*sys.argv[1:])
