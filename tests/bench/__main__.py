"""Rates of the pure parts on real lines, each beside a peer in one run: ``python -m tests.bench [REQUEST_LOG.gz]``.

* grammar: records of a request log to silver's rows in Arrow, as a task of the parse stage makes them, against
  ``json.loads`` of the same lines alone;
* kernel: fold of a synthetic partition, against sorting the same events.
"""

from __future__ import annotations

import gc
import gzip
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from highwater.pipelines.grammars.facts import LINE_COLUMNS, REQUEST_LOGGER, parse_lines
from highwater.pipelines.kafka.context import Context
from highwater.pipelines.kafka.versions import rules_for
from highwater.pipelines.replay.kernel import finish, step
from highwater.pipelines.replay.state import State
from highwater.schemas import events as e
from highwater.schemas.bronze import LOG_LINES
from highwater.schemas.events import Event

SLICE = Path(__file__).parents[1] / "data" / "slice" / "broker-3" / "logs" / "kafka-request.log.gz"
_PREFIX = "Completed request:"
#: 2026-01-01T00:00:00Z.
_LOGGED_US = 1_767_225_600_000_000


def timed(work: Callable[[], object]) -> float:
    """Seconds of the fastest of three runs, of CPU."""
    best = float("inf")
    for _ in range(3):
        started = time.process_time()
        work()
        best = min(best, time.process_time() - started)
    return best


def grammar(path: Path) -> None:
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    messages = [line.split(_PREFIX, 1)[1].rsplit(" (", 1)[0] for line in lines if _PREFIX in line]
    schema = pa.schema([LOG_LINES.arrow_schema.field(name) for name in LINE_COLUMNS])
    logged = {"kind": "kafka-request", "level": "DEBUG", "logger": REQUEST_LOGGER, "time": _LOGGED_US, "broker_id": 1}
    records = [
        {**logged, "file_id": "f", "cluster_id": "c", "byte_offset": at, "line_no": at, "message": _PREFIX + text}
        for at, text in enumerate(messages)
    ]
    batch = pa.RecordBatch.from_pylist(records, schema=schema)
    gc.disable()  # as workers do
    ours = timed(lambda: list(parse_lines(iter([batch]))))
    peer = timed(lambda: [json.loads(text) for text in messages])
    gc.enable()
    size = sum(map(len, messages)) / 1e6
    rate = f"{len(messages) / ours:,.0f} lines/s, {size / ours:.0f} MB/s"
    print(f"grammar: {rate}; json.loads alone takes {peer / ours:.2f} of its time")


def kernel(appends: int = 50_000) -> None:
    history = [Event(0, e.LEADER_START, 0, leader_epoch=0, offset=0, high_watermark=0, isr=(1, 2, 3))]
    for number in range(appends):
        at = 1_000 * (number + 1)
        history.append(_produce(at, number))
        history += [_fetch(at + 300 * replica, replica, number + 1) for replica in (2, 3)]
    context = Context(1, rules_for("3.9.1"), 30_000_000)

    def fold() -> int:
        state = State(context)
        return sum(len(list(step(state, event))) for event in history) + len(list(finish(state)))

    ours = timed(fold)
    peer = timed(lambda: sorted(history, key=lambda event: event.time_us))
    print(f"kernel: {len(history) / ours:,.0f} events/s; sorting them takes {peer / ours:.3f} of its time")


def _produce(at: int, base: int) -> Event:
    return Event(at, e.PRODUCE, at, offset=base, error_code=0, request_id=str(base), acks=-1, timeout_ms=5_000)


def _fetch(at: int, replica: int, offset: int) -> Event:
    chain = f"c{replica}"
    return Event(at, e.FETCH, at, offset=offset, replica_id=replica, chain=chain, sequence=offset, chain_end_us=1 << 60)


if __name__ == "__main__":
    grammar(Path(sys.argv[1]) if len(sys.argv) > 1 else SLICE)
    kernel()
