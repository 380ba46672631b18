"""Reads a folder of logs as an audit does, up to the facts of each record, without Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from highwater.pipelines.base.config import load_config
from highwater.pipelines.bronze.discover import discover
from highwater.pipelines.bronze.layout import Layout
from highwater.pipelines.bronze.neighbours import Identity
from highwater.pipelines.bronze.passes import HowRead, batches, profiles, span_of
from highwater.pipelines.bronze.profile import Profile, profile
from highwater.pipelines.bronze.ranges import RangeCutter
from highwater.pipelines.bronze.reader import sourced_records
from highwater.pipelines.bronze.register import identify
from highwater.pipelines.bronze.rows import FileSpan
from highwater.pipelines.grammars.facts import parse_record
from highwater.pipelines.grammars.record import UNPARSED, LineFact, Parsed
from highwater.pipelines.kafka.raw_record import RawRecord
from highwater.pipelines.storage.store import open_file

MIB = 1 << 20


class ReadRecord(NamedTuple):
    """A record as silver has it."""

    path: str
    broker_id: int | None
    time_us: int | None
    level: str | None
    logger: str | None
    problem: str | None
    message: str
    parsed: Parsed


class ReadFolder(NamedTuple):
    """What was read of a folder."""

    files: dict[str, Profile]  #: those with text, by path; each source of a file of several by itself
    identities: dict[str, Identity]
    records: list[ReadRecord]

    @property
    def coverage(self) -> float:
        """Share of the records that were understood."""
        unparsed = sum(record.parsed.outcome == UNPARSED for record in self.records)
        return 1 - unparsed / len(self.records) if self.records else 0.0

    @property
    def brokers(self) -> dict[int, tuple[str | None, str | None]]:
        """Version and mode of each broker."""
        told = {}
        for identity in self.identities.values():
            if identity.broker_id is not None:
                told[identity.broker_id] = (identity.kafka_version, identity.mode)
        return dict(sorted(told.items()))


def profiled(path: Path | str, zone: str = "UTC", *more: Any) -> list[Profile]:
    """Profiles of a file."""
    with open_file(path) as file:
        return profile(str(path), file, zone, *(more or (MIB,)))


def log_records(
    blocks: Iterable[bytes], layout: Layout | None, record_bytes_max: int, *more: Any, cutter: RangeCutter | None = None
) -> Iterator[RawRecord]:
    """Yield the records of `sourced_records` without their sources."""
    sourced = sourced_records(blocks, layout, record_bytes_max, *more, cutter=cutter)
    return (record for _, record in sourced)


def read_folder(folder: Path) -> ReadFolder:
    """Read all logs below a folder."""
    config = load_config().ingest
    how = HowRead(config.timezone, MIB, tuple(config.include), tuple(config.exclude))
    found = discover([folder], config.include, config.exclude)
    items = [item for path in found.files for item in profiles(path, frozenset(), {}, how)]
    files = {item.path: item for item in items if isinstance(item, Profile)}
    identities, _ = identify(list(files.values()), [], [])
    records = []
    by_file: dict[str, list[FileSpan]] = {}
    for item in files.values():
        if item.readable:
            by_file.setdefault(item.bundle or item.path, []).append(span_of(item, identities[item.path]))
    for spans in by_file.values():
        path_of = {span.log.content_id: span.log.path for span in spans}
        records += [_record(path_of[row["file_id"]], row) for row in _rows(batches(spans, how))]
    return ReadFolder(files, identities, records)


def _rows(found: Iterable[Any]) -> Iterator[dict[str, Any]]:
    for batch in found:
        time_us = batch.column("time").cast("int64").to_pylist()
        for row, at in zip(batch.to_pylist(), time_us, strict=True):
            yield row | {"time": at}


def _record(path: str, row: dict[str, Any]) -> ReadRecord:
    about = (row["time"], row["level"], row["logger"], row["problem"], row["message"])
    return ReadRecord(path, row["broker_id"], *about, parse_record(row["kind"], *about))


def reasons(records: Iterable[ReadRecord]) -> Counter[tuple[str | None, str]]:
    """What was not understood, for a message."""
    return Counter(
        (record.parsed.reason, record.parsed.template) for record in records if record.parsed.outcome == UNPARSED
    )


def columns_of(fact: LineFact) -> dict[str, Any]:
    """Columns of a fact by their names, and so what stands in its lists."""
    row = by_name(fact.row)
    return {
        name: [by_name(entry) for entry in value] if isinstance(value, list) else value for name, value in row.items()
    }


def by_name(row: Any) -> Any:
    """A named tuple as a dict; anything else as it is."""
    return row._asdict() if hasattr(row, "_asdict") else row
