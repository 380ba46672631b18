"""State of gold tables for asset events, read from Delta's log by the standard library: no Spark, no highwater."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

#: Every gold table; a test compares them with the declarations.
GOLD_TABLES = (
    "availability",
    "broker_timeline",
    "clock_bounds",
    "controller_timeline",
    "controller_transitions",
    "coverage",
    "delayed_operations",
    "evidence",
    "failovers",
    "fetcher_timeline",
    "holes",
    "incident_lines",
    "incidents",
    "isr_absences",
    "isr_timeline",
    "partition_timeline",
    "replica_blame",
    "replica_truncations",
    "request_phases",
    "rule_results",
    "runs",
    "share_operations",
    "violations",
)

_COMMIT = re.compile(r"(\d{20})\.json")


class TableState(NamedTuple):
    """Current state of a Delta table.

    Attributes:
        version: its latest version; None if the table does not exist.
        rows: its rows; None if the log does not show them (older commits are in a Parquet checkpoint, and the latest
            one has no checksum that lists all files).
        run_id: id of the last audit that wrote it; None for no audit.
    """

    version: int | None = None
    rows: int | None = None
    run_id: str | None = None


def read_state(table: Path) -> TableState:
    """Return the state of the Delta table in a folder."""
    logged = {
        int(match[1]): path for path in (table / "_delta_log").glob("*.json") if (match := _COMMIT.fullmatch(path.name))
    }
    if not logged:
        return TableState()
    run_id = None
    commits: list[list[dict[str, Any]]] = []
    for version in range(max(logged), -1, -1):
        if version not in logged:
            return TableState(max(logged), _read_checksum_rows(table, max(logged)), run_id)
        actions = [json.loads(line) for line in logged[version].read_text(encoding="utf-8").splitlines()]
        commits.append(actions)
        info = _find_info(actions)
        run_id = run_id or info.get("userMetadata")
        if _is_full_overwrite(info):
            break
    return TableState(max(logged), _count_rows(reversed(commits)), run_id)


def _find_info(actions: list[dict[str, Any]]) -> dict[str, Any]:
    return next((action["commitInfo"] for action in actions if "commitInfo" in action), {})


def _is_full_overwrite(info: dict[str, Any]) -> bool:
    """Return whether an operation makes all earlier rows irrelevant."""
    how = info.get("operationParameters", {})
    return info.get("operation") == "WRITE" and how.get("mode") == "Overwrite" and "predicate" not in how


def _count_rows(commits: Iterator[list[dict[str, Any]]]) -> int | None:
    """Return rows of the remaining files, without those that deletion vectors delete; None if a file has no count."""
    files: dict[str, int | None] = {}
    for actions in commits:
        # A file that one commit removes and adds again (with another deletion vector) stays.
        for removed in (action["remove"] for action in actions if "remove" in action):
            files.pop(removed["path"], None)
        for added in (action["add"] for action in actions if "add" in action):
            files[added["path"]] = _count_records(added)
    return _sum(files.values())


def _read_checksum_rows(table: Path, version: int) -> int | None:
    """Return rows by Delta's checksum, which lists all files of a version unless there are thousands."""
    try:
        checksum = json.loads((table / "_delta_log" / f"{version:020}.crc").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    files = checksum.get("allFiles")
    if files is None or len(files) != checksum["numFiles"]:
        return None
    return _sum(map(_count_records, files))


def _count_records(added: dict[str, Any]) -> int | None:
    records = json.loads(added.get("stats") or "{}").get("numRecords")
    gone = (added.get("deletionVector") or {}).get("cardinality", 0)
    return None if records is None else records - gone


def _sum(counts: Iterable[int | None]) -> int | None:
    known = list(counts)
    return None if None in known else sum(count for count in known if count is not None)
