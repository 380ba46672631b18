"""``highwater metrics``: brokers' metrics as files for other tools. Without Spark."""

from __future__ import annotations

from jobs.exit_codes import ExitCode
from jobs.question import Question
from pipelines.base.errors import InputError
from pipelines.lake.clusters import FileCluster, cluster_named
from pipelines.metrics.export import Row, csv_files, openmetrics_lines
from pipelines.report.write import made_folder
from pipelines.storage.place import Place, resolved
from pipelines.storage.store import store_of

OPENMETRICS = "metrics.openmetrics.txt"


def export(question: Question, out: Place) -> ExitCode:
    """Write the metrics of a lake: of one cluster if it is named, else each broker's in a folder of its cluster.

    Args:
        question: of intervals by their start.

    Raises:
        InputError: there is no lake, it holds no metrics of that time or cluster, or the folder cannot be written.
    """
    root = question.lake
    rows: list[Row] = list(question.reader.rows("SELECT * FROM gold_broker_metrics"))
    if question.cluster is not None:
        files_of = [FileCluster(row["cluster_id"], row["broker_id"]) for row in rows]
        chosen = cluster_named(root, files_of, question.cluster)
        rows = [row for row in rows if row["cluster_id"] == chosen]
    since_us, until_us = question.window
    if not any(
        (since_us is None or row["interval_start"] >= since_us)
        and (until_us is None or row["interval_start"] < until_us)
        for row in rows
    ):
        raise InputError(root, "has no metrics of that time", "see what there is: select * from gold_broker_metrics")
    files = csv_files(rows, since_us, until_us)
    if question.form == "openmetrics":
        files = iter([(OPENMETRICS, list(openmetrics_lines(rows, since_us, until_us)))])
    store, folder, number = store_of(out), resolved(out), 0
    with made_folder(out, "metrics"):
        for number, (name, lines) in enumerate(files, 1):  # noqa: B007
            store.make_folder((folder / name).parent)
            store.replace(folder / name, ("\n".join(lines) + "\n").encode())
    written = out / OPENMETRICS if question.form == "openmetrics" else f"{number} files below {out}"
    question.console.result(f"wrote {written}")
    return ExitCode.CLEAN
