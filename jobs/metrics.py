"""``highwater metrics``: brokers' metrics as a file for Prometheus. Without Spark."""

from __future__ import annotations

from highwater.jobs.exit_codes import ExitCode
from highwater.jobs.question import Question
from highwater.pipelines.base.errors import InputError
from highwater.pipelines.lake.reader import Rows
from highwater.pipelines.metrics.export import export_openmetrics
from highwater.pipelines.report.write import prepare_folder
from highwater.pipelines.storage.place import Place, resolved
from highwater.pipelines.storage.store import store_of
from highwater.schemas.views import VIEW_BY_NAME

OPENMETRICS = "metrics.openmetrics.txt"


def export(question: Question, out: Place) -> ExitCode:
    """Write broker metrics of the question's window and cluster as an OpenMetrics file. Samples count by minute start.

    Raises:
        InputError: the lake does not exist, has no such metrics, or the file cannot be written.
    """
    brokers, requests = (_rows(question, name) for name in ("broker_metrics", "request_metrics"))
    since_us, until_us = question.window
    lines = list(export_openmetrics(brokers, requests, since_us, until_us))
    if len(lines) == 1:
        raise InputError(
            question.lake, "has no metrics of that time", "see what there is: select * from broker_metrics"
        )
    with prepare_folder(out, "metrics"):
        store_of(out).replace(resolved(out) / OPENMETRICS, ("\n".join(lines) + "\n").encode())
    question.console.result(f"wrote {out / OPENMETRICS}")
    return ExitCode.CLEAN


def _rows(question: Question, name: str) -> Rows:
    reader, cluster_id = question.reader, question.cluster_id
    reader.make_view(VIEW_BY_NAME[name])
    return reader.rows(f"SELECT * FROM {name} WHERE coalesce(cluster_id = $cluster_id, TRUE)", cluster_id=cluster_id)
