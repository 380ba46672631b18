"""Holes that the audit sees in folders of logs, without Spark: ``python -m tests.bench.holes CORPUS...``.

What is whole has none. Only lines that matter for it are parsed, so all corpora take a minute.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.base.blobs import unpack
from pipelines.bronze.passes import HowRead
from pipelines.bronze.profile import Profile
from pipelines.bronze.rows import FileSpan, rows
from pipelines.cluster import premises as p
from pipelines.cluster import rows as pr
from pipelines.cluster.premises import Premises, premises_of
from pipelines.grammars.facts import parse_lines
from pipelines.rules.holes import Hole, holes_of_requests
from pipelines.rules.silences import silent_logs
from schemas import silver
from tests.reading import profiled

#: What lines have that tell of followers' fetches, and of a broker's start and stop.
NEEDLES = "etcher|starting|Starting|hutting down|PRODUCE|opic ?[iI][dD]"
_BROKER = re.compile(r"broker-(\d+)")


def premises_of_folder(folder: Path, cluster_id: str = "c") -> Premises:
    """What the logs of a cluster, in folders ``broker-<id>/logs``, tell of their completeness."""
    told: list[dict[str, Any]] = []
    for path in sorted(folder.glob("broker-*/logs/*")):
        match = _BROKER.search(str(path.parent.parent.name))
        assert match is not None
        told += _rows_of_file(path, cluster_id, int(match[1]))
    return premises_of(told, 0)


def _rows_of_file(path: Path, cluster_id: str, broker_id: int) -> Iterator[dict[str, Any]]:
    how = HowRead("UTC", 1 << 20, ("*",), ())
    for item in profiled(str(path), how.timezone, how.record_bytes_max):
        yield from _rows_of_source(item, how, cluster_id, broker_id)


def _rows_of_source(item: Profile, how: HowRead, cluster_id: str, broker_id: int) -> Iterator[dict[str, Any]]:
    columns = dict.fromkeys(pr.SHAPE)
    times = {"first_us": item.first_us, "last_us": item.last_us}
    names = {"file_id": item.content_id, "path": item.path, "file_kind": item.kind, "kind": p.FILE}
    yield {**columns, **names, **times, "cluster_id": cluster_id, "broker_id": broker_id}
    span = FileSpan(item, cluster_id, broker_id)
    if not item.readable:
        return
    for batch in rows([span], how.timezone, how.record_bytes_max):
        yield from (columns | row for row in pr.stretches(batch).to_pylist())
        matters = pc.fill_null(pc.match_substring_regex(batch.column("message"), NEEDLES), False)
        for blob in parse_lines(iter([batch.filter(matters)])):
            table = blob.column("table")[0].as_py()
            if table in _MADE:
                for part in unpack([blob]):
                    yield from (columns | row for made in _MADE[table](part) for row in made.to_pylist())


def _lives_and_ends(part: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    is_end = pc.equal(part.column("event"), p.FETCHER_STOPPING)
    yield pr.thread_ends(part.filter(is_end))
    names = ("cluster_id", "broker_id", "file_id", "byte_offset", "line_no", "time")
    yield pr.of_kind(part.select([*names, "event", "mode", "kafka_version", "detail"]), p.LIFE)


def _growths(part: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    by_id = pc.binary_join_element_wise("id:", part.column("topic_id"), "")
    topics = pc.coalesce(part.column("topic"), by_id, "id:unknown")
    part = part.set_column(part.schema.get_field_index("topic"), "topic", topics)
    yield pr.growths(part.filter(pc.equal(part.column("source"), "request")))


_MADE = {
    silver.PRODUCE_REQUESTS.name: lambda part: [pr.stretches(part, p.PRODUCE)],
    silver.REPLICA_FETCHES.name: _growths,
    silver.TOPICS.name: lambda part: [pr.distinct(part.select(["cluster_id", "topic_id", "topic"]), p.NAME)],
    silver.FETCH_REQUESTS.name: lambda part: [pr.chains(part)],
    silver.REQUESTS.name: lambda part: [pr.chains(part)],
    silver.FETCHER_EVENTS.name: lambda part: [pr.fetch_ends(part)],
    silver.BROKER_LIFECYCLE.name: _lives_and_ends,
}


def holes_of_folder(folder: Path) -> list[Hole]:
    """Return the holes in the logs of a cluster."""
    told = premises_of_folder(folder)
    return [
        *holes_of_requests(told.files, told.lives, told.runs, told.fetch_ends),
        *silent_logs(told.stretches, told.runs, told.topic_names),
    ]


def main() -> None:
    """Print the holes of each folder."""
    for name in sys.argv[1:]:
        holes = holes_of_folder(Path(name))
        print(f"{Path(name).name}: {len(holes)}", flush=True)
        for hole in holes:
            print(f"  {hole.message}")


if __name__ == "__main__":
    main()
