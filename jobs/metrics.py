"""``highwater metrics``: brokers' metrics as files for other tools. Without Spark."""

from __future__ import annotations

from datetime import datetime

from jobs.exit_codes import ExitCode
from jobs.lakes import tables_in
from pipelines.base.console import Console
from pipelines.base.errors import InputError
from pipelines.base.values import micros
from pipelines.lake.clusters import ClusterFile, cluster_named
from pipelines.lake.reader import LakeReader
from pipelines.metrics.export import Row, csv_files, openmetrics_lines
from pipelines.report.write import made_folder
from pipelines.storage.place import Place, resolved
from pipelines.storage.store import store_of

OPENMETRICS = "metrics.openmetrics.txt"


def export(
    console: Console,
    root: Place,
    out: Place,
    form: str,
    since: datetime | None,
    until: datetime | None,
    cluster: str | None = None,
) -> ExitCode:
    """Write the metrics of a lake.

    Args:
        form: ``csv`` or ``openmetrics``.
        since, until: intervals by their start, the end exclusive.
        cluster: only of this one; None: of all, each broker's in a folder of its cluster where there are several.

    Raises:
        InputError: there is no lake, it holds no metrics of that time or cluster, or the folder cannot be written.
    """
    rows: list[Row] = list(LakeReader(root, tables_in(root)).rows("SELECT * FROM gold_broker_metrics"))
    if cluster is not None:
        chosen = cluster_named(root, [ClusterFile(row["cluster_id"], row["broker_id"]) for row in rows], cluster)
        rows = [row for row in rows if row["cluster_id"] == chosen]
    since_us, until_us = micros(since), micros(until)
    if not any(
        (since_us is None or row["interval_start"] >= since_us)
        and (until_us is None or row["interval_start"] < until_us)
        for row in rows
    ):
        raise InputError(root, "has no metrics of that time", "see what there is: select * from gold_broker_metrics")
    files = csv_files(rows, since_us, until_us)
    if form == "openmetrics":
        files = iter([(OPENMETRICS, list(openmetrics_lines(rows, since_us, until_us)))])
    store, folder, number = store_of(out), resolved(out), 0
    with made_folder(out, "metrics"):
        for number, (name, lines) in enumerate(files, 1):  # noqa: B007
            store.make_folder((folder / name).parent)
            store.replace(folder / name, ("\n".join(lines) + "\n").encode())
    console.result(f"wrote {out / OPENMETRICS}" if form == "openmetrics" else f"wrote {number} files below {out}")
    return ExitCode.CLEAN
