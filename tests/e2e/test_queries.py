"""How many queries an audit asks of Spark, by its event log."""

from __future__ import annotations

import json
from pathlib import Path

from tests.verbs import SLICE, in_process

#: Each has a price that does not depend on how much it reads: a plan, tasks that start, a commit.
QUERIES_MAX = 15
_STARTED = "SparkListenerSQLExecutionStart"


def test_an_audit_asks_few_queries(tmp_path: Path) -> None:
    events = tmp_path / "events"
    events.mkdir()
    settings = {"enabled": "true", "dir": events.as_uri(), "compress": "false"}
    lines = [f'"spark.eventLog.{name}" = "{value}"' for name, value in settings.items()]
    conf = tmp_path / "conf.toml"
    conf.write_text("\n".join(["[session.spark]", *lines]), encoding="utf-8")
    done = in_process(tmp_path, "audit", SLICE, "--conf", conf)
    assert done.code == 0, done.err
    logged = [line for path in events.rglob("events_*") for line in path.read_text(encoding="utf-8").splitlines()]
    asked = [event for event in map(json.loads, logged) if event["Event"].endswith(_STARTED)]
    described = [event["description"] for event in asked]
    assert 5 < len(described) <= QUERIES_MAX, "\n".join(described)
