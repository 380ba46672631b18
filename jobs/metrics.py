"""``highwater metrics``: brokers' metrics as files for other tools. Without Spark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from jobs.exit_codes import ExitCode
from jobs.lakes import tables_in
from pipelines.base.arrow_rows import dicts
from pipelines.base.console import Console
from pipelines.base.errors import InputError
from pipelines.lake.clusters import ClusterFile, cluster_named
from pipelines.lake.delta_log import read_log
from pipelines.lake.parquet import read_files
from pipelines.metrics.export import Row, csv_files, openmetrics_lines
from pipelines.metrics.live import dashboard
from pipelines.metrics.mbeans import metrics_markdown
from pipelines.report.write import made_folder
from pipelines.storage.place import Place, resolved
from pipelines.storage.store import store_of
from schemas.metrics import BROKER_METRICS

OPENMETRICS = "metrics.openmetrics.txt"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


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
    rows = metrics_of(root)
    if cluster is not None:
        chosen = cluster_named(root, [ClusterFile(row["cluster_id"], row["broker_id"]) for row in rows], cluster)
        rows = [row for row in rows if row["cluster_id"] == chosen]
    since_us, until_us = _micros(since), _micros(until)
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


def metrics_of(root: Place) -> list[Row]:
    """Rows of ``gold.broker_metrics``; instants in microseconds.

    Raises:
        InputError: the lake has no such table, or only Delta can read it.
    """
    path = tables_in(root).get(BROKER_METRICS.full_name)
    if path is None:
        raise InputError(root, f"holds no table {BROKER_METRICS.full_name}", "audit its logs with this version first")
    log = read_log(path)
    if not log.is_plain:
        raise InputError(path, "has rows that only Delta can tell", "read it with Spark or another reader of Delta")
    files = [path / file.path for file in log.files]
    return list(dicts(read_files(BROKER_METRICS, files, BROKER_METRICS.column_names)))


def show_document(console: Console) -> ExitCode:
    """Print the table of docs/metrics.md."""
    console.result(metrics_markdown().rstrip("\n"))
    return ExitCode.CLEAN


def show_dashboard(console: Console) -> ExitCode:
    """Print a Grafana dashboard of what `highwater watch` exposes."""
    console.result(dashboard())
    return ExitCode.CLEAN


def _micros(time: datetime | None) -> int | None:
    return None if time is None else (time - _EPOCH) // _MICROSECOND
