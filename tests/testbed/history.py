"""The ground truth of a run: what was done to the cluster, what clients saw, what can be read in the end.

One JSON object per line, in three files:

* ``faults.jsonl``: ``t``, ``what``, mostly ``broker``, and what else describes it;
* ``client-history.jsonl``: ``kind`` is ``produce`` (once answered or given up), ``consume``, ``commit``, ``abort``,
  ``txnerr``, ``consume_err``;
* ``final-records.jsonl``: each record that a consumer finds when all is over; and per partition its ``start`` and
  ``end`` then.

Times are Unix seconds.
"""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FAULTS = "faults.jsonl"
CLIENTS = "client-history.jsonl"
FINAL = "final-records.jsonl"
REPLICAS = "replicas.json"
#: What brokers exposed, if it was read: `tests/testbed/JmxReader.java`.
JMX = "jmx.csv"
ACKS_ALL = "all"
ACKS_LEADER = "1"


class Ledger:
    """Writes the three files of a run, from several threads."""

    def __init__(self, folder: Path) -> None:
        self._lock = threading.Lock()
        self._files = {name: (folder / name).open("w", encoding="utf-8") for name in (FAULTS, CLIENTS, FINAL)}

    def fault(self, what: str, **details: Any) -> None:
        """Something is about to be done to the cluster."""
        self._write(FAULTS, {"t": time.time(), "what": what} | details)

    def client(self, kind: str, **details: Any) -> None:
        """A client saw something."""
        self._write(CLIENTS, {"kind": kind} | details)

    def final(self, **details: Any) -> None:
        """A record, or a partition's bounds, after all is over."""
        self._write(FINAL, details)

    def _write(self, name: str, row: dict[str, Any]) -> None:
        with self._lock:
            if not self._files[name].closed:
                self._files[name].write(json.dumps(row) + "\n")
                if name == FAULTS:
                    self._files[name].flush()

    def close(self) -> None:
        """Nothing is written from here on."""
        with self._lock:
            for file in self._files.values():
                file.close()


@dataclass(frozen=True)
class Produced:
    """An answered, or given up, record; ``offset`` is None without an acknowledgement, ``time_s`` is when it ended."""

    topic: str
    partition: int
    offset: int | None
    key: str
    acks: str
    sent_s: float
    time_s: float


@dataclass(frozen=True)
class Fault:
    """Something done to the cluster."""

    time_s: float
    what: str
    broker: int | None
    details: dict[str, Any]


Place = tuple[str, int]


@dataclass(frozen=True)
class History:
    """What a run left."""

    produced: tuple[Produced, ...]  #: records that clients sent
    faults: tuple[Fault, ...]  #: in time order
    #: key by offset of each record that could be read in the end, by topic and partition
    final: dict[Place, dict[int, str]]
    starts: dict[Place, int]  #: where those logs began in the end: what lies before it was deleted by retention
    differing: dict[Place, tuple[int, ...]]  #: offsets at which replicas' logs differ, by topic and partition

    def first(self, what: str) -> Fault:
        """First fault of a kind."""
        return next(fault for fault in self.faults if fault.what == what)


def read_history(corpus: Path) -> History:
    """Read what a run left, packed or not."""
    produced = tuple(
        Produced(row["topic"], row["partition"], _offset(row), row["key"], row["acks"], row["t0"], row["t1"])
        for row in _rows(corpus, CLIENTS)
        if row["kind"] == "produce" and row["partition"] is not None
    )
    faults = tuple(Fault(row.pop("t"), row.pop("what"), row.pop("broker", None), row) for row in _rows(corpus, FAULTS))
    final: dict[Place, dict[int, str]] = {}
    starts: dict[Place, int] = {}
    for row in _rows(corpus, FINAL):
        place = (row["topic"], row["partition"])
        if "start" in row:
            starts[place] = row["start"]
            final.setdefault(place, {})
        else:
            final.setdefault(place, {})[row["offset"]] = row["key"]
    replicas = json.loads((corpus / REPLICAS).read_text(encoding="utf-8"))
    differing = {(row["topic"], row["partition"]): tuple(row["differing"]) for row in replicas if row["differing"]}
    return History(produced, faults, final, starts, differing)


def _offset(row: dict[str, Any]) -> int | None:
    offset = row["offset"]
    return offset if offset is not None and offset >= 0 else None


def _rows(corpus: Path, name: str) -> Iterator[dict[str, Any]]:
    path = corpus / name
    content = path.read_bytes() if path.is_file() else gzip.decompress(path.with_name(f"{name}.gz").read_bytes())
    for line in content.splitlines():
        yield json.loads(line)
