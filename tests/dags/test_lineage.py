"""OpenLineage: the events that Airflow's provider sends of real runs, by OpenLineage's own schemas."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.dags.conftest import ROOT, Deployment

AT_16 = datetime(2026, 11, 20, 16, tzinfo=UTC)
SCHEMAS = ROOT / "tests/data/openlineage"
COMMIT = {"commitInfo": {"operation": "WRITE", "operationParameters": {"mode": "Overwrite"}, "userMetadata": "r"}}

#: What a report says: a topic with a violation, one without, an undecided rule.
REPORT = {
    "verdict": "violated",
    "topics": [{"cluster_id": "c-1", "topic": "orders"}, {"cluster_id": "c-1", "topic": "clicks"}],
    "rules": [
        {"rule_id": "committed-data-lost", "verdict": "violated", "cases": 1, "reason": None},
        {"rule_id": "hw-regression", "verdict": "clean", "cases": 0, "reason": None},
        {"rule_id": "hw-above-isr", "verdict": "inconclusive", "cases": 0, "reason": "a gap"},
    ],
    "violations": [
        {
            "rule_id": "committed-data-lost",
            "topic": "orders",
            "partition": 3,
            "leader_epoch": 5,
            "offset_start": 12,
            "offset_end": 15,
            "time": None,
            "message": "Offsets 12 to 14 are lost.",
        }
    ],
}


@pytest.fixture
def send(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[tuple[str, str], Any]]:
    """Run the hourly DAG with a command that only notes its calls; gives the events by task and type."""
    if find_spec("airflow.providers.openlineage") is None:
        pytest.skip("needs Airflow's OpenLineage provider")
    recorder = Path(__file__).with_name("recorder.py")
    monkeypatch.setenv("HIGHWATER_COMMAND", shlex.join([sys.executable, str(recorder), str(deployment.folder)]))
    events = deployment.folder / "events.jsonl"
    config = deployment.folder / "openlineage.yml"
    config.write_text(f"transport:\n  type: file\n  log_file_path: {events}\n  append: true\n")

    def run(written: dict[str, Any] | None = None, configured: bool = True, **codes: int) -> dict[tuple[str, str], Any]:
        if configured:
            monkeypatch.setenv("OPENLINEAGE_CONFIG", str(config))
        (deployment.folder / "codes.json").write_text(json.dumps(codes))
        for name, rows in (("bronze/log_lines", 7), ("silver/topics", 2), ("gold/violations", 1)):
            log = deployment.lake / name / "_delta_log"
            log.mkdir(parents=True)
            added = {"add": {"path": "a", "stats": json.dumps({"numRecords": rows})}}
            (log / f"{0:020}.json").write_text("\n".join(map(json.dumps, (COMMIT, added))))
        if written is not None:
            folder = deployment.reports / "20261120T1500"
            folder.mkdir(parents=True)
            (folder / "report.json").write_text(json.dumps(written))
        runner = Path(__file__).with_name("run_dag.py")
        subprocess.run([sys.executable, runner, "highwater_audit", AT_16.isoformat()], check=True)
        told = [json.loads(line) for line in events.read_text().splitlines()] if events.is_file() else []
        for event in told:
            validate(event)
        return {(event["job"]["name"].removeprefix("highwater_audit."), event["eventType"]): event for event in told}

    return run


def validate(event: dict[str, Any]) -> None:
    """By the schemas of the event and of those facets that have theirs here."""
    from jsonschema import Draft202012Validator
    from referencing import Registry, Resource

    documents = {path.stem: json.loads(path.read_text()) for path in SCHEMAS.glob("*.json")}
    registry = Registry().with_resources(
        (document["$id"], Resource.from_contents(document)) for document in documents.values()
    )
    Draft202012Validator({"$ref": documents["OpenLineage"]["$id"]}, registry=registry).validate(event)
    checked = 0
    for part in (event["run"], *event["inputs"], *event["outputs"]):
        for kind in ("facets", "inputFacets", "outputFacets"):
            for name, facet in part.get(kind, {}).items():
                for stem, document in documents.items():
                    if name in document.get("properties", {}) and stem != "OpenLineage":
                        Draft202012Validator({"$ref": document["$id"]}, registry=registry).validate({name: facet})
                        checked += 1
    assert checked


def places(datasets: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(dataset["namespace"], dataset["name"]) for dataset in datasets]


def test_tasks_tell_what_they_read_and_wrote(send, deployment: Deployment) -> None:
    events = send(REPORT)
    lake = str(deployment.lake)
    assert {kind for task, kind in events if task == "ingest"} == {"START", "COMPLETE"}
    ingest = events["ingest", "COMPLETE"]
    assert places(ingest["inputs"]) == [("file", str(deployment.logs))]
    assert ("file", f"{lake}/bronze/log_lines") in places(ingest["outputs"])
    assert ingest["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 7
    replay = events["replay", "COMPLETE"]
    assert ("file", f"{lake}/silver/topics") in places(replay["inputs"])
    written = {dataset["name"]: dataset for dataset in replay["outputs"]}[f"{lake}/gold/violations"]
    assert written["facets"]["version"]["datasetVersion"] == "0"


def test_topics_have_the_verdict_as_assertions(send, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIGHWATER_KAFKA", "broker-1:9092")
    event = send(REPORT)["report", "COMPLETE"]
    topics = {
        dataset["name"]: dataset for dataset in event["inputs"] if dataset["namespace"] == "kafka://broker-1:9092"
    }
    asserted = {
        name: [
            (assertion["name"], assertion["success"])
            for assertion in dataset["inputFacets"]["dataQualityAssertions"]["assertions"]
        ]
        for name, dataset in topics.items()
    }
    assert asserted == {
        "orders": [("every-guarantee-kept", False), ("committed-data-lost", False)],
        "clicks": [("every-guarantee-kept", True)],
    }
    params = topics["orders"]["inputFacets"]["dataQualityAssertions"]["assertions"][1]["params"]
    assert params == {"partition": 3, "leader_epoch": 5, "offset_start": 12, "offset_end": 15}
    tests = {test["name"]: test["status"] for test in event["run"]["facets"]["test"]["tests"]}
    assert tests == {"committed-data-lost": "fail", "hw-regression": "pass", "hw-above-isr": "skip"}


def test_where_nothing_firm_can_be_said_a_topic_has_no_assertion(send) -> None:
    event = send(REPORT | {"verdict": "inconclusive", "violations": []})["report", "COMPLETE"]
    assert [place for place in places(event["inputs"]) if place[0].startswith("kafka:")] == []


def test_a_gate_that_fails_is_told(send) -> None:
    events = send(REPORT, gate=1)
    assert ("gate", "FAIL") in events
    assert "errorMessage" in events["gate", "FAIL"]["run"]["facets"]


def test_without_a_transport_nothing_is_sent(send) -> None:
    assert send(REPORT, configured=False) == {}


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("/lake/gold/runs", ("file", "/lake/gold/runs")),
        ("file:///lake", ("file", "/lake")),
        ("s3a://bucket/lake/gold", ("s3", "lake/gold")),
        ("hdfs://name:8020/lake", ("hdfs", "lake")),
        ("abfss://box@service.dfs.core.windows.net/lake", ("abfss", "lake")),
    ],
)
def test_places_are_named_as_openlineage_names_them(airflow_home: Path, path: str, named: tuple[str, str]) -> None:
    from highwater_lineage import place

    namespace, name = place(path)
    assert (namespace.partition("://")[0], name) == named
    assert namespace == "file" or path.split("://")[1].startswith(namespace.split("://")[1])
