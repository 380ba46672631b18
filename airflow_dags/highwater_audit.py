"""Hourly: audit new files in a folder of rotated logs, report the hour, fail if a guarantee was broken in it.

Every verb works on the whole lake and is safe to repeat: a file with known content is not read again, and gold
tables cover all files. So a run may start late, twice, or out of order; the next run includes files that came late.
Only `report` and `gate` are about the data interval.

Any past interval: `airflow backfill create --dag-id highwater_audit --from-date ... --to-date ...`.
"""

from __future__ import annotations

from typing import Any

from highwater_compat import DAG, CronDataIntervalTimetable, Param, chain
from highwater_tasks import (
    GOLD_ASSETS,
    LAKE,
    REPORTS,
    SHARED,
    LakeOperator,
    NewLogs,
    build_command,
    make_folder_param,
    make_number_param,
)

#: Verdicts: the report of a broken guarantee has been written all the same. The gate judges.
VERDICTS = (0, 1, 3)
#: The gate reports files that could not be read.
READ = (0, 3)

#: What to do when a task has failed.
_DOC = {
    "new_logs": "Waits for logs of the interval, if `wait_minutes` says so. It fails only where the folder cannot be "
    "read.",
    "ingest": "Reads new files. **Failed (2):** the folder `logs` is missing, empty or unreadable: mend the path or the"
    " shipping of logs, then clear the task. Files that cannot be read do not fail it; the gate tells of "
    "them.",
    "parse": "Lines to facts. **Failed (2):** the lake is of a newer version, or its disk is full. **70:** a defect: "
    "run the printed command with `HIGHWATER_DEBUG=1` and report it.",
    "quality": "Checks what was read. Files that were read wrongly go into quarantine, and the run continues without "
    "them. **Failed (2):** no other log is left. `highwater quality --docs DIR` shows rows, `--release FILE_ID` lets a "
    "file out.",
    "replay": "Kafka's rules over the facts. **Failed:** as parse. A run that was killed goes on from the last whole "
    "one.",
    "report": "Writes the interval's report. It does not fail on a verdict. **Failed (2):** `reports` cannot be "
    "written.",
    "gate": "The verdict. **Skipped:** it is inconclusive, or that of the interval alone is, as of an hour without "
    "lines: the log says why. **1:** a guarantee was broken in the interval: XCom `worst` names it, the report has the "
    "lines; `highwater trace finding` tells the story. **3:** logs are stale, or (with `fail_on: "
    "inconclusive`) do not show enough: look whether logs arrive and request logs are on. It is not tried "
    "again: the same logs give the same answer.",
}

with DAG(
    dag_id="highwater_audit",
    description="Audits the replication of Kafka from the logs that arrived, hour by hour.",
    doc_md=__doc__,
    # Not a cron string: that gives an empty data interval.
    schedule=CronDataIntervalTimetable("0 * * * *", timezone="UTC"),
    params={
        "logs": make_folder_param("logs", "/var/log/kafka", "Folder of rotated logs, with a folder per broker."),
        "lake": LAKE,
        "reports": REPORTS,
        "fail_on": Param(
            "violated",
            type="string",
            enum=["violated", "inconclusive"],
            title="fail_on",
            description="The least verdict with which the gate fails.",
        ),
        "cluster": Param(
            "",
            type="string",
            title="cluster",
            description="Report and gate are of this cluster only, where the lake has several; empty: of all.",
        ),
        "wait_minutes": make_number_param(
            "wait_minutes",
            0,
            0,
            50,
            "Wait so long after the interval for a file of logs that is newer than it; 0: begin at once.",
        ),
        "lookback_hours": make_number_param(
            "lookback_hours",
            1,
            0,
            168,
            "The gate judges so many hours before the interval, too: what files that came late show.",
        ),
        "stale_after_hours": make_number_param(
            "stale_after_hours",
            0,
            0,
            8760,
            "The gate fails where a broker's newest line is older than so many hours before the interval's end; 0: "
            "twice the interval.",
        ),
    },
    **SHARED,
) as dag:
    lake = '--lake "$HIGHWATER_LAKE"'
    # Nothing at all where no cluster is named.
    of_cluster = '${HIGHWATER_CLUSTER:+--cluster "$HIGHWATER_CLUSTER"}'
    cluster = {"HIGHWATER_CLUSTER": "{{ params.cluster }}"}
    # Of every task, so that a run without an interval fails before it has done anything.
    interval = {
        "HIGHWATER_FROM": "{{ data_interval_start.isoformat() }}",
        "HIGHWATER_UNTIL": "{{ data_interval_end.isoformat() }}",
    }

    new_logs = NewLogs(
        task_id="new_logs",
        logs="{{ params.logs }}",
        end="{{ data_interval_end.isoformat() }}",
        minutes="{{ params.wait_minutes }}",
        pool="default_pool",
        doc_md=_DOC["new_logs"],
    )

    def make_task(verb: str, *arguments: str, passing: tuple[int, ...] = (0,), **kwargs: Any) -> LakeOperator:
        """Return the task of a verb, with arguments quoted for Bash."""
        command = build_command(verb, *arguments, passing=passing)
        env = interval | kwargs.pop("env", {})
        return LakeOperator(task_id=verb, doc_md=_DOC[verb], bash_command=command, env=env, **kwargs)

    ingest = make_task(
        "ingest",
        '"$HIGHWATER_LOGS"',
        lake,
        passing=READ,
        env={"HIGHWATER_LOGS": "{{ params.logs }}"},
        writes=("bronze",),
    )
    parse = make_task("parse", lake, reads=("bronze",), writes=("silver",))
    quality = make_task("quality", lake, reads=("silver",), writes=("quality",))
    replay = make_task("replay", lake, outlets=list(GOLD_ASSETS.values()), reads=("silver",), writes=("gold",))
    report = make_task(
        "report",
        lake,
        '--out "$HIGHWATER_OUT" --from "$HIGHWATER_FROM" --until "$HIGHWATER_UNTIL"',
        of_cluster,
        passing=VERDICTS,
        env=cluster | {"HIGHWATER_OUT": "{{ params.reports }}/{{ data_interval_start.strftime('%Y%m%dT%H%M') }}"},
        reads=("gold",),
    )
    gate = make_task(
        "gate",
        lake,
        '--from "$HIGHWATER_FROM" --until "$HIGHWATER_UNTIL" --fail-on "$HIGHWATER_FAIL_ON" '
        '--stale-after "$HIGHWATER_STALE_AFTER"',
        of_cluster,
        env=cluster
        | {
            "HIGHWATER_FROM": (
                "{{ (data_interval_start - macros.timedelta(hours=params.lookback_hours)).isoformat() }}"
            ),
            "HIGHWATER_FAIL_ON": "{{ params.fail_on }}",
            "HIGHWATER_STALE_AFTER": (
                "{{ params.stale_after_hours or 2 * (data_interval_end - data_interval_start).total_seconds() / 3600 }}"
            ),
        },
        reads=("gold",),
        doubts=("report",),
        # Its answer is the same the second time.
        retries=0,
    )

    chain(new_logs, ingest, parse, quality, replay, report, gate)
