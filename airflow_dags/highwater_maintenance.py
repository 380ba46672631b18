"""Nightly: OPTIMIZE, VACUUM and state clean-up of the lake (`highwater maintain`), and the end of old reports.

What is vacuumed is gone for time travel, and for whoever still reads it: hence a day at least. Delta's logs go back 30
days, hence no more.
"""

from __future__ import annotations

from datetime import UTC, datetime

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG, CronDataIntervalTimetable, Param
from highwater_tasks import DEFAULT_ARGS, LAKE, REPORTS, LakeOperator, highwater

#: Only folders that `highwater_audit` names: other things may lie beside them.
_EXPIRE = """set -euo pipefail
[ -d "$HIGHWATER_REPORTS" ] || exit 0
find "$HIGHWATER_REPORTS" -mindepth 1 -maxdepth 1 -type d \
    -name '[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]T[0-9][0-9][0-9][0-9]' \
    -mtime +"$HIGHWATER_REPORTS_DAYS" -print -exec rm -rf {} +
"""

with DAG(
    dag_id="highwater_maintenance",
    description="Keeps highwater's lake small and its reports few.",
    doc_md=__doc__,
    schedule=CronDataIntervalTimetable("30 3 * * *", timezone="UTC"),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args=DEFAULT_ARGS,
    tags=["highwater"],
    params={
        "lake": LAKE,
        "reports": REPORTS,
        "retention_hours": Param(
            168,
            type="integer",
            minimum=24,
            maximum=720,
            title="retention_hours",
            description="Files that no version younger than this needs are deleted.",
        ),
        "reports_days": Param(
            90,
            type="integer",
            minimum=1,
            maximum=36_500,
            title="reports_days",
            description="Reports older than this are deleted.",
        ),
    },
) as dag:
    maintain = LakeOperator(
        task_id="maintain",
        bash_command=highwater(
            "maintain", '--lake "$HIGHWATER_LAKE"', '--retention-hours "$HIGHWATER_RETENTION_HOURS"'
        ),
        env={"HIGHWATER_RETENTION_HOURS": "{{ params.retention_hours }}"},
    )
    expire_reports = BashOperator(
        task_id="expire_reports",
        bash_command=_EXPIRE,
        env={
            "HIGHWATER_REPORTS": "{{ params.reports }}",
            "HIGHWATER_REPORTS_DAYS": "{{ params.reports_days }}",
        },
        append_env=True,
        skip_on_exit_code=None,
    )
