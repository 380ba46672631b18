"""Nightly: drop old days (`highwater expire`, if `keep` is set), compact files and delete unneeded ones
(`highwater maintain`), and delete old reports.

Removed files end time travel, and running reads of them: hence a retention of at least a day. Delta's logs cover 30
days, hence at most 30.
"""

from __future__ import annotations

from airflow.providers.standard.operators.bash import BashOperator
from highwater_compat import DAG, CronDataIntervalTimetable, Param
from highwater_tasks import LAKE, REPORTS, SHARED, LakeOperator, build_command, make_number_param

#: Deletes only folders named by `highwater_audit`; others in the same folder stay.
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
    params={
        "lake": LAKE,
        "reports": REPORTS,
        "retention_hours": make_number_param(
            "retention_hours", 168, 24, 720, "Files that no version younger than this needs are deleted."
        ),
        "keep": Param(
            "",
            type="string",
            pattern=r"^([1-9][0-9]{0,4}d)?$",
            title="keep",
            description="Days kept, as 90d; empty: all.",
        ),
        "reports_days": make_number_param("reports_days", 90, 1, 36_500, "Reports older than this are deleted."),
    },
    **SHARED,
) as dag:
    expire = LakeOperator(
        task_id="expire",
        doc_md="Drops old days, if `keep` is set. **Failed (2):** another run has the lake: clear the task.",
        bash_command='[ -n "$HIGHWATER_KEEP" ] || exit 0\n'
        + build_command("expire", '--lake "$HIGHWATER_LAKE"', '--keep "$HIGHWATER_KEEP"'),
        env={"HIGHWATER_KEEP": "{{ params.keep }}"},
    )
    maintain = LakeOperator(
        task_id="maintain",
        doc_md="Compacts, and removes files that no version in use needs. **Failed:** safe to clear at any time.",
        bash_command=build_command(
            "maintain", '--lake "$HIGHWATER_LAKE"', '--retention-hours "$HIGHWATER_RETENTION_HOURS"'
        ),
        env={"HIGHWATER_RETENTION_HOURS": "{{ params.retention_hours }}"},
    )
    expire_reports = BashOperator(
        task_id="expire_reports",
        pool="default_pool",
        doc_md="Removes old reports. **Failed:** `reports` cannot be written by the worker.",
        bash_command=_EXPIRE,
        env={
            "HIGHWATER_REPORTS": "{{ params.reports }}",
            "HIGHWATER_REPORTS_DAYS": "{{ params.reports_days }}",
        },
        append_env=True,
        skip_on_exit_code=None,
    )
    # What is dropped is freed by the maintenance of a later night, when no version needs it any more.
    expire >> maintain
