"""OpenLineage facets of a task: folders and tables that it read and wrote, and the audit's results by topic.

Airflow's OpenLineage provider calls this, and sends START, COMPLETE and FAIL. Without the provider or a transport
(``OPENLINEAGE_URL``, ``openlineage.yml``) nothing is sent. Names follow OpenLineage's conventions.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from highwater_lake import read_state

#: Topics that assertions are made of; more are left out.
TOPICS_MAX = 1000
_ASSERTION = "kafka_replication"
_STATUS = {"clean": "pass", "violated": "fail", "inconclusive": "skip"}
#: Schemes that OpenLineage calls otherwise.
_SCHEMES = {"s3a": "s3", "s3n": "s3"}


def place(path: str) -> tuple[str, str]:
    """Return the namespace and name of a folder: a path of a machine, or a URI."""
    parts = urlsplit(path)
    if not parts.scheme or parts.scheme == "file":
        return "file", parts.path if parts.scheme else path
    return f"{_SCHEMES.get(parts.scheme, parts.scheme)}://{parts.netloc}", parts.path.lstrip("/") or "/"


def list_tables(lake: str, layers: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """Yield name and folder of the current tables of some layers of a local lake."""
    for layer in layers:
        for log in sorted(Path(lake).glob(f"{layer}/*/_delta_log")):
            yield f"{layer}.{log.parent.name}", log.parent


def build_lineage(
    reads: Iterable[str], writes: Iterable[str], lake: str, folders: Iterable[str], report: str | None
) -> Any:
    """Return the lineage that the provider asks for.

    Args:
        reads, writes: layers of the lake.
        folders: of logs that it read.
        report: folder of the report that it wrote, if it did.
    """
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import InputDataset, OutputDataset
    from openlineage.client.facet_v2 import dataset_version_dataset, output_statistics_output_dataset

    def build_version(state: Any) -> dict[str, Any]:
        if state.version is None:
            return {}
        return {"version": dataset_version_dataset.DatasetVersionDatasetFacet(datasetVersion=str(state.version))}

    inputs = [InputDataset(*place(folder)) for folder in folders]
    inputs += [
        InputDataset(*place(str(path)), facets=build_version(read_state(path))) for _, path in list_tables(lake, reads)
    ]
    outputs = []
    for _, path in list_tables(lake, writes):
        state = read_state(path)
        rows = (
            {}
            if state.rows is None
            else {
                "outputStatistics": output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
                    rowCount=state.rows
                )
            }
        )
        outputs.append(OutputDataset(*place(str(path)), facets=build_version(state), outputFacets=rows))
    report_read = _read_report(report)
    if report_read is None:
        return OperatorLineage(inputs=inputs, outputs=outputs)
    outputs.append(OutputDataset(*place(report or "")))
    return OperatorLineage(
        inputs=[*inputs, *_build_topics(report_read)], outputs=outputs, run_facets=_build_tests(report_read)
    )


def _read_report(folder: str | None) -> dict[str, Any] | None:
    if folder is None:
        return None
    try:
        loaded: dict[str, Any] = json.loads((Path(folder) / "report.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return loaded


def _build_topics(report: Mapping[str, Any]) -> Iterator[Any]:
    """Yield topics with assertions; none where the audit decides nothing."""
    from openlineage.client.event_v2 import InputDataset
    from openlineage.client.facet_v2 import data_quality_assertions_dataset as quality

    violated: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for finding in report["violations"]:
        violated[finding["topic"]].append(finding)
    topics = [(topic["cluster_id"], topic["topic"]) for topic in report["topics"]]
    for cluster_id, topic in topics[:TOPICS_MAX]:
        assertions = [
            quality.Assertion(
                assertion=_ASSERTION,
                name=finding["rule_id"],
                success=False,
                severity="error",
                description=finding["message"],
                params={
                    name: finding[name]
                    for name in ("partition", "leader_epoch", "offset_start", "offset_end", "time")
                    if finding[name] is not None
                },
            )
            for finding in violated[topic]
        ]
        if not assertions and report["verdict"] == "inconclusive":
            continue
        whole = quality.Assertion(
            assertion=_ASSERTION,
            name="every-guarantee-kept",
            success=not assertions,
            severity="error",
            description="No guarantee of replication that these logs allow to check was broken.",
        )
        facet = quality.DataQualityAssertionsDatasetFacet(assertions=[whole, *assertions])
        namespace = f"kafka://{os.environ.get('HIGHWATER_KAFKA') or cluster_id}"
        yield InputDataset(namespace, topic, inputFacets={"dataQualityAssertions": facet})


def _build_tests(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return every rule as a test of this run; a rule that these logs do not decide was skipped."""
    from openlineage.client.facet_v2 import test_run

    executions = [
        test_run.TestExecution(
            name=rule["rule_id"],
            status=_STATUS[rule["verdict"]],
            severity="error",
            type=_ASSERTION,
            expected="0",
            actual=str(rule["cases"]),
            description=rule["reason"],
        )
        for rule in report["rules"]
    ]
    return {"test": test_run.TestRunFacet(tests=executions)} if executions else {}
