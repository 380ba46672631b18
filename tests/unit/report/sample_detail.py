"""What only the page shows, made by hand, with one text wherever a text can come from logs."""

from typing import Any

from highwater.pipelines.report.cluster.parts import (
    ClockPair,
    Cluster,
    Event,
    Failover,
    Leaders,
    Life,
    Restart,
    Setting,
    Step,
    Story,
    StoryPart,
    Unavailable,
)
from highwater.pipelines.report.cubes.parts import (
    ClientCells,
    Cubes,
    ErrorCells,
    LeftOut,
    Node,
    OperationCells,
    RequestCells,
    SlowCells,
    TotalCells,
)
from highwater.pipelines.report.detail import Cost, Detail, RuleText
from highwater.pipelines.report.model import Report
from tests.unit.report import sample

#: 2026-11-20T14:05:00Z
START_S = 1_795_183_500
TIME = sample.TIME
LATER = "2026-11-20T14:05:08.500Z"


def cubes(text: str = "orders", cluster_id: str = "c") -> Cubes:
    """Ten intervals of 1 s; in each a leader's produces that waited for replica 2, and one that failed."""
    number = 10
    cells = range(2 * number)
    return Cubes(
        start_s=START_S,
        interval_s=1,
        intervals=number,
        accuracy=0.02,
        growth=1.02 / 0.98,
        nodes=[Node(cluster_id=cluster_id, broker_id=broker_id) for broker_id in (1, 2, -1)],
        operations=OperationCells(
            interval=[cell // 2 for cell in cells],
            kind=["produce"] * len(cells),
            leader=[0] * len(cells),
            replica=[1] * len(cells),
            succeeded=[1 - cell % 2 for cell in cells],
            operations=[1 if cell % 2 else 10 + cell for cell in cells],
            slow=[0 if cell % 2 else cell // 2 for cell in cells],
            wait_us=[4000 * (1 + cell) for cell in cells],
            slow_wait_us=[1000 * cell for cell in cells],
            explained=[1 if cell % 2 else 10 + cell for cell in cells],
            **{name: [0] * len(cells) for name in ("jitter", "late", "unobservable", "contradicted")},
            **{
                name: [1 if cell % 2 else 10 + cell for cell in cells] for name in ("within_1", "within_5", "within_20")
            },
            split=[1] * len(cells),
            parts_us=[[1000, 2000, 3000, 4000, 5000, 0] for _ in cells],
            wait=[[-150, 1] if cell % 2 else [-150, 10, -49, cell] for cell in cells],
        ),
        totals=TotalCells(
            interval=[cell // 2 for cell in cells],
            kind=["produce"] * len(cells),
            replica=[1] * len(cells),
            succeeded=[1 - cell % 2 for cell in cells],
            total=[[-151, 1] if cell % 2 else [-151, 10, -49, cell] for cell in cells],
            without=[[-150, 1] if cell % 2 else [-150, 10, -9, cell] for cell in cells],
        ),
        slow=SlowCells(
            interval=[3, 4],
            kind=["produce", "produce"],
            leader=[0, 0],
            replica=[1, 1],
            succeeded=[1, 0],
            topic=[text, None],
            partition=[3, None],
            client=[text, None],
            operations=[2, 1],
            slow_wait_us=[90_000, 10_000],
            wait_us_max=[60_000, 30_000],
            left_out=LeftOut(rows=5, amount=1234),
        ),
        errors=ErrorCells(
            interval=[4],
            leader=[0],
            api=[text],
            client=[text],
            code=[7],
            operations=[1],
            left_out=LeftOut(rows=0, amount=0),
        ),
        requests=RequestCells(
            interval=[3, 4],
            kind=["produce_acks_all", text],
            requests=[10, 1],
            within_1=[10, 1],
            total_us=[50_000, 3000],
            phases_us=[[1000] * 7, [100] * 7],
            total=[[-150, 10], [-140, 1]],
        ),
        clients=ClientCells(
            interval=[3, 4],
            client=[text, None],
            api=[text, "FETCH"],
            requests=[10, 1],
            total_us=[50_000, 3000],
            total_us_max=[9000, 3000],
            left_out=LeftOut(rows=1, amount=7),
        ),
    )


def story(text: str = "orders", cluster_id: str = "c", **changes: Any) -> Story:
    part = StoryPart(
        topic=text,
        partition=3,
        leader_epoch=5,
        base_offset=12,
        required_offset=15,
        error_code=0,
        cause=text,
        closing_replica=2,
        isr=(1, 2),
        missing=text,
    )
    values: dict[str, Any] = {
        "request_id": "ab" * 16,
        "kind": "produce",
        "api": text,
        "cluster_id": cluster_id,
        "broker_id": 1,
        "client_id": text,
        "connection": text,
        "correlation_id": 17,
        "arrival": "2026-11-20T14:05:03.250Z",
        "wait_ms": 5801.0,
        "residual_ms": 5800.25,
        "succeeded": True,
        "error_codes": (0,),
        "operation_class": text,
        "class_reason": text,
        "known_bug": text,
        "cause": text,
        "closing_partition": f"{text}-3",
        "closing_replica": 2,
        "closing_role": text,
        "parts_ms": {"carry": 1.0, "follower": 5800.0},
        "partitions": (part, part),
        "partitions_left_out": 3,
        "steps": (
            Step(time=TIME, what=text),
            Step(time=LATER, what="answered", file=text, line_no=7, byte_offset=512, text=text),
        ),
    }
    return Story(**values | changes)


def cluster(text: str = "orders", cluster_id: str = "c") -> Cluster:
    of_broker: dict[str, Any] = {"cluster_id": cluster_id, "broker_id": 1}
    of_partition: dict[str, Any] = {"cluster_id": cluster_id, "topic": text, "partition": 3}
    return Cluster(
        lives=(
            Life(**of_broker, state="up", start=None, end=TIME),
            Life(**of_broker, state="down", start=TIME, end=LATER),
        ),
        leaders=(Leaders(**of_broker, steps=((TIME, 3), (LATER, 2))),),
        events=(
            Event(**of_broker, time=TIME, kind=text, count=2, partitions=(text, text), detail=text),
            Event(**of_broker, time=LATER, kind="election", count=1, partitions=(text,), detail="elected leader"),
        ),
        unavailable=(
            Unavailable(
                **of_partition,
                state="under_min_isr",
                start=TIME,
                end=LATER,
                duration_ms=8500.0,
                isr=(1,),
                min_insync_replicas=2,
                produces_refused=4,
            ),
            Unavailable(
                **of_partition,
                state="offline",
                start=TIME,
                end=None,
                duration_ms=None,
                isr=(),
                min_insync_replicas=None,
                produces_refused=None,
            ),
        ),
        failovers=(
            Failover(
                **of_partition,
                time=TIME,
                reason=text,
                strategy=text,
                old_leader=1,
                new_leader=2,
                outcome=text,
                to_taken_up_ms=57.0,
                to_serving_ms=None,
                approximate=True,
            ),
        ),
        restarts=(
            Restart(
                **of_broker,
                ending="found_gone",
                down=TIME,
                starting="2026-11-20T14:05:04.000Z",
                started="2026-11-20T14:05:05.000Z",
                isr_lost=3,
                isr_back=3,
                isr_full=LATER,
            ),
        ),
        settings=(Setting(key=text, by_nature=False, values=((text, (1,)), (None, (2,)))),),
        clocks=(
            ClockPair(
                cluster_id=cluster_id,
                broker_a=1,
                broker_b=2,
                windows=3,
                links=40,
                lowest_ms=-4.0,
                highest_ms=12.5,
                time=TIME,
                changes=1,
                changed_ms=191.0,
                changed_since=TIME,
                changed_until=LATER,
                drift_ppm=22470.6,
            ),
        ),
        stories=(story(text, cluster_id),),
        left_out={"events": 3, "unavailable": 0, "failovers": 1, "settings": 0, "clocks": 2},
    )


def detail(text: str = "orders", cluster_id: str = "c", **changes: Any) -> Detail:
    values: dict[str, Any] = {
        "cluster": cluster(text, cluster_id),
        "cubes": cubes(text, cluster_id),
        "rules": (RuleText(rule_id=text, guarantee=text, source=text, tier="T1", needs=text),),
        "cost": Cost(bytes=1000, lines=100, made=LATER, seconds=12.5),
    }
    return Detail(**values | changes)


def detailed(report: Report, text: str = "orders", cluster_id: str = "c") -> Report:
    """A report with all that the page shows."""
    return report.model_copy(update={"detail": detail(text, cluster_id)})


def hostile(text: str) -> Report:
    """A report, page included, with one text wherever a text can come from logs."""
    return detailed(sample.hostile(text), text, text)
