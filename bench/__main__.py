"""Rates of the pure parts on real lines, each beside a peer in the same run: ``python -m bench [REQUEST_LOG.gz]``.

* grammar: request log lines to rows, against ``json.loads`` of the same lines alone;
* kernel: fold of a synthetic partition, against sorting the same events.
"""

from __future__ import annotations

import gzip
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from pipelines.replay.kernel import Context, State, finish, step
from pipelines.replay.versions import rules_for
from pipelines.silver.record import Record
from pipelines.silver.request_log import parse_request
from schemas import events as e
from schemas.events import Event

SLICE = Path(__file__).parents[1] / "tests" / "data" / "slice" / "broker-3" / "logs" / "kafka-request.log.gz"
_PREFIX = "Completed request:"


def timed(work: Callable[[], object]) -> float:
    """Seconds of the fastest of three runs."""
    best = float("inf")
    for _ in range(3):
        started = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - started)
    return best


def grammar(path: Path) -> None:
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    messages = [line.split(_PREFIX, 1)[1].rsplit(" (", 1)[0] for line in lines if _PREFIX in line]
    records = [Record("kafka-request", 0, "DEBUG", "kafka.request.logger", _PREFIX + text) for text in messages]
    ours = timed(lambda: [parse_request(record) for record in records])
    peer = timed(lambda: [json.loads(text) for text in messages])
    size = sum(map(len, messages)) / 1e6
    rate = f"{len(records) / ours:,.0f} lines/s, {size / ours:.0f} MB/s"
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
