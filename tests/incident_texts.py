"""What lines alone tell of incidents, as texts: ``python -m tests.incident_texts``

Writes a text for each case of ../shared/wild into tests/data/incidents/wild, which `tests/unit/incidents/test_wild.py`
holds the kinds against: read it aloud beside the case's expected.md before it is committed. Incidents that only the
replay shows (ISR, outages, elections, findings) are not in it: no Spark runs here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from highwater.pipelines.base.arrow_rows import dicts
from highwater.pipelines.incidents import questions
from highwater.pipelines.incidents.facts import Facts, boots_apart
from highwater.pipelines.incidents.incident import LoggedIncident
from highwater.pipelines.incidents.kind import kinds_by_signature
from highwater.pipelines.incidents.kinds import KINDS
from highwater.pipelines.incidents.story import incidents_of
from highwater.pipelines.incidents.words import at
from tests.reading import ReadFolder, read_folder

ROOT = Path(__file__).parents[1]
WILD = ROOT.parent / "shared" / "wild"
GOLDEN = ROOT / "tests" / "data" / "incidents" / "wild"
#: Cases with request logs, whose point is another one; and one of which nothing is read.
LEFT_OUT = ("09", "12", "24", "25", "38")
_OF_LIVES = ("event", "kafka_version", "mode", "detail")
_OF_CONTROLLERS = ("event", "controller_epoch", "subject_broker_id", "brokers", "topic", "leader", "detail")
_SIGNATURES = [signature for kind in KINDS for signature in kind.signatures]


def cases() -> list[str]:
    """Folders of ../shared/wild that have a text; none where it is absent."""
    folders = WILD.glob("*/") if WILD.is_dir() else ()
    return sorted(folder.name for folder in folders if folder.name[:2] not in LEFT_OUT)


def golden_of(case: str) -> Path:
    """The text of a case, by its number."""
    return GOLDEN / f"{case[:2]}.txt"


def facts_of_lines(folder: ReadFolder) -> Facts:
    """What a lake would give of a folder but for what only Spark makes of it."""
    clusters = {path: identity.cluster_id for path, identity in folder.identities.items()}
    lines = [
        {
            "cluster_id": clusters[record.path],
            "broker_id": record.broker_id,
            "time": record.time_us,
            "level": record.level,
            "logger": record.logger,
            "message": record.message,
            "file_id": record.path,
            "byte_offset": number,
        }
        for number, record in enumerate(folder.records)
    ]
    of_tables: dict[str, list[dict[str, Any]]] = {"broker_lifecycle": [], "controller_events": []}
    for line, record in zip(lines, folder.records, strict=True):
        for fact in record.parsed.facts:
            if fact.table in of_tables and record.time_us is not None:
                of_tables[fact.table].append({**line, **fact.row})
    asked = _asked(lines)
    ends: dict[str, int] = {}
    for row in asked["last_lines"]:
        ends[row["cluster_id"]] = max(ends.get(row["cluster_id"], 0), row["last_time"])
    return Facts(
        files=[_file(folder, path, lines) for path in folder.identities],
        lifecycle=_with(of_tables["broker_lifecycle"], _OF_LIVES),
        controller_events=[
            row
            for row in _with(of_tables["controller_events"], (*_OF_CONTROLLERS, "partition"))
            if row["partition"] is None
        ],
        ends=ends,
        kinds_by_signature=kinds_by_signature(KINDS),
        **asked,
    )


def _asked(lines: Sequence[dict[str, Any]]) -> dict[str, Any]:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    schema = pa.schema(
        [
            *(("cluster_id", pa.string()), ("broker_id", pa.int32()), ("time", pa.timestamp("us", "UTC"))),
            *((name, pa.string()) for name in ("level", "logger", "message", "file_id")),
            ("byte_offset", pa.int64()),
        ]
    )
    connection.register("bronze_log_lines", pa.Table.from_pylist(list(lines), schema=schema))
    resolution = "CASE WHEN bool_and(epoch_us(time) % 1000000 = 0) THEN 1000000 ELSE 1000 END"
    connection.execute(
        f"CREATE VIEW bronze_log_files AS SELECT cluster_id, broker_id, {resolution} AS resolution_us "
        "FROM bronze_log_lines GROUP BY ALL"
    )
    statements = {
        "silences": questions.silences(),
        "last_lines": questions.last_lines(),
        "remarks": questions.remarks(_SIGNATURES),
        "loud": questions.loud(_SIGNATURES),
    }
    asked = {name: dicts(connection.sql(statement).to_arrow_table()) for name, statement in statements.items()}
    silences, first_boots = boots_apart(asked["silences"])
    return {**asked, "silences": silences, "first_boots": first_boots}


def _file(folder: ReadFolder, path: str, lines: Sequence[dict[str, Any]]) -> dict[str, Any]:
    identity = folder.identities[path]
    times = [line["time"] for line in lines if line["file_id"] == path and line["time"] is not None]
    return {
        "cluster_id": identity.cluster_id,
        "broker_id": identity.broker_id,
        "kind": folder.files[path].kind,
        "path": path,
        "kafka_version": identity.kafka_version,
        "first_time": min(times, default=None),
        "last_time": max(times, default=None),
    }


def _with(rows: Sequence[dict[str, Any]], names: Sequence[str]) -> list[dict[str, Any]]:
    return sorted((dict.fromkeys(names) | row for row in rows), key=lambda row: row["time"])


def text_of(incidents: Sequence[LoggedIncident]) -> str:
    """The most harmful first; effects are indented below their cause."""
    return "\n".join(_lines(incidents))


def _lines(incidents: Sequence[LoggedIncident]) -> Iterator[str]:
    ids = {incident.incident_id for incident in incidents}
    for incident in incidents:
        indent = "    " if incident.caused_by in ids else ""
        end = "the end of the logs" if incident.end_us is None else at(incident.end_us)
        yield f"{indent}{incident.severity} {incident.kind}, {at(incident.start_us)} to {end}"
        yield f"{indent}{incident.sentence}"
        if incident.known_bug is not None:
            jira, fixed_in = incident.known_bug
            yield f"{indent}Known bug {jira}, fixed in {fixed_in or 'no release'}."
        if incident.advice:
            yield f"{indent}> {incident.advice}"
        yield ""


def text_of_case(case: str) -> str:
    """What the lines of a case tell."""
    return text_of(incidents_of(facts_of_lines(read_folder(WILD / case / "input")), KINDS))


if __name__ == "__main__":
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for case in cases():
        golden_of(case).write_text(text_of_case(case), encoding="utf-8")
