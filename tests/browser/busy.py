"""A day of a busy cluster, made up: twelve brokers, 5,000 partitions, and every list of the page at its limit."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

from highwater.pipelines.base.values import iso_utc
from highwater.pipelines.report.cluster.events import EVENTS_MAX, FAILOVERS_MAX, UNAVAILABLE_MAX
from highwater.pipelines.report.cluster.parts import Cluster, Event, Failover, Leaders, Life, Unavailable
from highwater.pipelines.report.cubes.assemble import CellRows, make_cubes
from highwater.pipelines.report.cubes.buckets import FINEST, SHORTEST_MS, growth
from highwater.pipelines.report.cubes.intervals import Intervals, choose_intervals
from highwater.pipelines.report.cubes.parts import Cubes, OperationCells
from highwater.pipelines.report.cubes.queries import CLIENTS_MAX, SLOW_MAX, STORIES_MAX
from highwater.pipelines.report.detail import Cost, Detail
from highwater.pipelines.report.figures import PHASES, SPLIT
from highwater.pipelines.report.model import Evidence, Report
from highwater.pipelines.report.page.render import FINDINGS_MAX
from tests.unit.report import sample, sample_detail

BROKERS = tuple(range(1, 13))
PARTITIONS = 5000
DAY_S = 86_400
START_S = sample_detail.START_S // 3600 * 3600
_TEXT = "[2026-11-20 14:05:00,123] INFO [Partition orders-events-v1-4711 broker=7] ISR updated to 1,2,3 " * 4


def cell_rows(intervals: Intervals, rng: random.Random) -> CellRows:
    """What a day's operations and requests would give."""
    every = range(intervals.number)
    kinds = ("produce_acks_all", "produce_acks_1", "fetch_follower", "fetch_consumer", "other")
    of_request = dict.fromkeys(("requests", "within_1", "total_us"), 9000) | {"phases_us": [9000] * len(PHASES)}
    return CellRows(
        operations=[
            cell(interval, leader, replica, rng)
            for interval in every
            for leader in BROKERS
            for replica in BROKERS
            if leader != replica
        ],
        totals=[
            {"interval": interval, "kind": "produce", "cluster_id": "c", "replica": replica, "succeeded": 1}
            | {name: histogram(rng, 30_000) for name in ("total", "without")}
            for interval in every
            for replica in BROKERS
        ],
        slow=[slow(number, intervals, rng) for number in range(SLOW_MAX)],
        errors=[],
        requests=[
            {"interval": interval, "kind": kind, "total": histogram(rng, 9000)} | of_request
            for interval in every
            for kind in kinds
        ],
        clients=[
            {
                "interval": number % intervals.number,
                "client": f"some-service-{number % 900}",
                "api": "PRODUCE",
                "requests": 1000,
                "total_us": 9_000_000,
                "total_us_max": 90_000,
                "rows_of_all": 2 * CLIENTS_MAX,
                "amount_of_all": 2_000 * CLIENTS_MAX,
            }
            for number in range(CLIENTS_MAX)
        ],
    )


def histogram(rng: random.Random, number: int) -> Counter[int]:
    """Of waits around 8 ms, with a tail."""
    ratio = math.log(growth(FINEST))
    waits = (rng.lognormvariate(2.1, 0.7) for _ in range(min(number, 400)))
    counts = Counter(1 + int(math.log(wait / SHORTEST_MS) / ratio) for wait in waits)
    return Counter({bucket: count * max(1, number // 400) for bucket, count in counts.items()})


def cell(interval: int, leader: int, replica: int, rng: random.Random) -> dict[str, Any]:
    key = {"interval": interval, "kind": "produce", "cluster_id": "c", "leader": leader, "replica": replica}
    counts = OperationCells.model_fields.keys() - key - {"succeeded", "parts_us", "wait"}
    sums = {name: rng.randrange(1000, 100_000) for name in sorted(counts)}
    parts = [rng.randrange(1000, 100_000) for _ in SPLIT]
    return key | {"succeeded": 1, "parts_us": parts, "wait": histogram(rng, 3000)} | sums


def slow(number: int, intervals: Intervals, rng: random.Random) -> dict[str, Any]:
    return {
        "interval": rng.randrange(intervals.number),
        "kind": "produce",
        "cluster_id": "c",
        "leader": rng.choice(BROKERS),
        "replica": rng.choice(BROKERS),
        "succeeded": 1,
        "topic": f"orders-events-v{number % 50}",
        "partition": number % 100,
        "client": f"some-service-{number % 900}",
        "operations": 5,
        "slow_wait_us": 1_000_000 - number,
        "wait_us_max": 500_000,
        "rows_of_all": 2 * SLOW_MAX,
        "amount_of_all": 2_000_000 * SLOW_MAX,
    }


def aggregates() -> Cubes:
    intervals = choose_intervals(START_S * 1_000_000, (START_S + DAY_S - 1) * 1_000_000, len(BROKERS))
    return make_cubes(cell_rows(intervals, random.Random(1)), intervals)


def time(second: float) -> str:
    return iso_utc(round((START_S + second) * 1_000_000))


def cluster() -> Cluster:
    rng = random.Random(2)
    node: dict[str, Any] = {"cluster_id": "c"}
    names = [f"orders-events-v{number % 50}-{number // 50}" for number in range(PARTITIONS)]
    place = [
        {"cluster_id": "c", "topic": name.rsplit("-", 1)[0], "partition": number // 50}
        for number, name in enumerate(names)
    ]
    return Cluster(
        lives=tuple(Life(**node, broker_id=broker, state="up", start=None, end=None) for broker in BROKERS),
        leaders=tuple(
            Leaders(**node, broker_id=broker, steps=tuple((time(second), 400) for second in range(0, DAY_S, 100)))
            for broker in BROKERS
        ),
        events=tuple(
            Event(
                **node,
                time=time(second),
                kind="isr_shrink",
                broker_id=rng.choice(BROKERS),
                count=400,
                partitions=tuple(rng.sample(names, 12)),
                detail="left an ISR (leader): 400 partitions",
            )
            for second in range(0, DAY_S, DAY_S // EVENTS_MAX)
        )[:EVENTS_MAX],
        unavailable=tuple(
            Unavailable(
                **place[number],
                state="under_min_isr",
                start=time(number * 60),
                end=time(number * 60 + 30),
                duration_ms=30_000.0,
                isr=(1,),
                min_insync_replicas=2,
                produces_refused=9,
            )
            for number in range(UNAVAILABLE_MAX)
        ),
        failovers=tuple(
            Failover(
                **place[number],
                time=time(number * 100),
                reason="fenced",
                strategy="offline",
                old_leader=1,
                new_leader=2,
                outcome="completed",
                to_taken_up_ms=50.0,
                to_serving_ms=700.0,
                approximate=False,
            )
            for number in range(FAILOVERS_MAX)
        ),
        stories=tuple(
            sample_detail.story(request_id=f"{number:032x}", arrival=time(number * 60)) for number in range(STORIES_MAX)
        ),
        left_out={"events": 90_000, "unavailable": 4000, "failovers": 4500, "settings": 0},
    )


def report() -> Report:
    """The day's report."""
    lines = tuple(
        Evidence(file="broker-7/server.log.2026-11-20-14", line_no=number, byte_offset=99, text=_TEXT)
        for number in range(20)
    )
    findings = tuple(
        sample.finding(finding_id=f"f{number}", evidence=lines, time=time(number * 60))
        for number in range(FINDINGS_MAX + 500)
    )
    brokers = tuple(sample.broker(broker, first_time=time(0), last_time=time(DAY_S - 1)) for broker in BROKERS)
    made = sample.audited(violations=findings, observations=findings, open_cases=findings, brokers=brokers)
    cost = Cost(bytes=40_000_000_000, lines=400_000_000, made=None, seconds=5000.0)
    return made.model_copy(update={"detail": Detail(cluster=cluster(), cubes=aggregates(), rules=(), cost=cost)})
