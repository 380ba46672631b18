"""Rows of the tables that the report reads, and quantiles the plain way."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

from highwater.pipelines.report.figures import Collected
from highwater.schemas.gold import CLASSES

START = datetime(2026, 11, 20, 14, 0, 0, tzinfo=UTC)

Row = dict[str, Any]


def at(ms: float) -> datetime:
    return START + timedelta(milliseconds=ms)


def operation(number: int, **changes: Any) -> Row:
    wait = changes.pop("wait_ms", 4.0)
    arrival = changes.pop("arrival_ms", number * 10.0)
    return {
        "cluster_id": "c",
        "broker_id": 1,
        "arrival_time": at(arrival),
        "operation_id": f"{number:032x}",
        "operation": "produce",
        "api": "PRODUCE",
        "client_id": "p-1",
        "correlation_id": number,
        "line_time": at(arrival + wait + 2),
        "handled_time": at(arrival + 1),
        "completed_time": at(arrival + 1 + wait),
        "error_codes": [0],
        "succeeded": True,
        "predicted_error_codes": [0],
        "interval_width_ms": 1.5,
        "residual_ms": 0.0,
        "class": "explained",
        "cause": "high_watermark",
        "closing_topic": "orders",
        "closing_partition": 0,
        "closing_replica": 2,
        "closing_role": "isr_member",
        "wait_ms": wait,
        "wait_for_fetch_ms": wait - 1,
        "wait_completion_ms": 1.0,
        "wait_without_closing_ms": min(wait, 2.0),
        "partitions": [],
    } | changes


def fetch(number: int, **changes: Any) -> Row:
    row = operation(number, operation_id=f"f{number:031x}", operation="fetch", api="FETCH", cause="bytes")
    parts = ("wait_for_fetch_ms", "wait_completion_ms", "wait_without_closing_ms", "closing_replica", "closing_role")
    values = {"replica_id": -1, "min_bytes": 1, "isolation_level": 0, "parked": True, "bytes_known": True}
    return row | dict.fromkeys(parts) | values | {"error_codes": [], "predicted_error_codes": []} | changes


def request(number: int, **changes: Any) -> Row:
    return {
        "cluster_id": "c",
        "broker_id": 1,
        "arrival_time": at(number),
        "api": "PRODUCE",
        "line_time": at(number + 9),
        "correlation_id": number,
        "acks": -1,
        "total_time_ms": 8.0,
        "request_queue_time_ms": 1.0,
        "local_time_ms": 1.0,
        "remote_time_ms": 4.0,
        "throttle_time_ms": 0.0,
        "response_queue_time_ms": 1.0,
        "send_time_ms": 1.0,
        "unaccounted_ms": 0.0,
    } | changes


def random_operations(seed: int, size: int) -> list[Row]:
    rng = random.Random(seed)
    rows = []
    for number in range(size):
        name = rng.choices(CLASSES, (80, 8, 4, 6, 2))[0]
        wait = round(rng.expovariate(1 / 15), 3)
        role = rng.choice(("isr_member", "outside_isr", "left_isr", "leader", None))
        replica = rng.choice((2, 3)) if role not in ("leader", None) else None
        succeeded = rng.random() < 0.9
        seen = name != "unobservable"
        rows.append(
            operation(
                number,
                arrival_ms=rng.randrange(60_000),
                wait_ms=wait,
                **{"class": name},
                class_reason={"late": "lost_wake_up", "unobservable": "fetch_not_logged"}.get(name),
                known_bug="KAFKA-13091" if name == "late" and rng.random() < 0.5 else None,
                residual_ms=round(rng.gauss(0, 6), 2) if seen else None,
                interval_width_ms=round(rng.random() * 5, 2) if seen else None,
                cause=rng.choice(("high_watermark", "isr_change")),
                closing_role=role,
                closing_replica=replica,
                succeeded=succeeded,
                error_codes=[0] if succeeded else [19],
                wait_for_fetch_ms=wait / 2 if replica else None,
                wait_completion_ms=wait / 2 if replica else None,
                wait_without_closing_ms=round(wait * rng.random(), 3) if replica else None,
            )
        )
    return rows


def random_fetches(seed: int, size: int) -> list[Row]:
    rng = random.Random(seed)
    rows = []
    for number in range(size):
        name = rng.choices(CLASSES[:4], (85, 8, 3, 4))[0]
        succeeded = rng.random() < 0.9
        replica = rng.choice((2, 3, -1, -1))
        waited = rng.random() < 0.6
        reason = rng.choice(("append_not_logged", "session_not_logged", "late_log_line"))
        rows.append(
            fetch(
                number,
                arrival_ms=rng.randrange(60_000),
                wait_ms=round(rng.expovariate(1 / 200), 3) if waited else 0.0,
                parked=waited,
                replica_id=replica,
                min_bytes=rng.choice((1, 20_000)),
                isolation_level=rng.choice((0, 1, None)) if replica < 0 else 0,
                **{"class": name},
                class_reason={"late": "leader_stalled", "unobservable": reason}.get(name),
                residual_ms=round(rng.gauss(0, 6), 2) if name != "unobservable" or rng.random() < 0.5 else None,
                interval_width_ms=round(rng.random() * 5, 2),
                cause=rng.choice(("bytes", "timer", "unknown")),
                succeeded=succeeded,
                error_codes=[] if succeeded else [6],
            )
        )
    return rows


def random_appends(seed: int, size: int) -> list[Row]:
    """Requests of coordinators."""
    apis = ("END_TXN", "OFFSET_COMMIT")
    rows = random_operations(seed, size)
    return [row | {"operation_id": f"c{number:031x}", "api": apis[number % 2]} for number, row in enumerate(rows)]


def random_requests(seed: int, size: int) -> list[Row]:
    """Requests of every kind that a report tells apart."""
    rng = random.Random(seed)
    rows = []
    for number in range(size):
        api, acks, replica = rng.choice(
            [
                *[("PRODUCE", acks, None) for acks in (-1, 0, 1)],
                *[("FETCH", None, replica) for replica in (2, -1)],
                ("END_TXN", None, None),
                ("METADATA", None, None),
            ]
        )
        changes = {"total_time_ms": round(rng.random() * 50, 3), "remote_time_ms": round(rng.random() * 40, 3)}
        unaccounted = rng.choice((0.0, 1.0, -1.0, 1.2))
        rows.append(request(number, api=api, acks=acks, replica_id=replica, unaccounted_ms=unaccounted, **changes))
    return rows


def log_file(path: str, broker_id: int | None, **changes: Any) -> Row:
    return {
        "file_id": path,
        "path": path,
        "sha256": "ab" * 32,
        "size_bytes": 1,
        "kind": "server",
        "cluster_id": "c",
        "broker_id": broker_id,
        "broker_ids": None,
        "line_count": 100,
        "record_count": 90,
        "first_time": at(0),
        "last_time": at(1000),
        "resolution_us": 1_000,
        "run_id": "run-1",
    } | changes


def covered(broker_id: int, template: str, lines: int, **changes: Any) -> Row:
    return {
        "cluster_id": "c",
        "broker_id": broker_id,
        "kind": "server",
        "logger": "kafka.request.logger",
        "level": "DEBUG",
        "template": template,
        "outcome": "typed",
        "line_count": lines,
    } | changes


def blame_interval(replica_id: int, start: datetime, singled_out: bool, kind: str = "produce") -> Row:
    numbers = ("wait_ms_total", "slow_wait_ms_total", "wait_ms_p50", "wait_ms_p99")
    shares = ("share_operations", "share_wait", "share_slow_wait")
    return {
        "cluster_id": "c",
        "kind": kind,
        "interval_start": start,
        "interval_s": 5,
        "replica_id": replica_id,
        "role": "isr_member",
        "operations": 1,
        "slow_operations": 1,
        "singled_out": singled_out,
    } | dict.fromkeys((*numbers, *shares), 0.0)


def source(number: int, broker_id: int, ms: float) -> Row:
    return {
        "cluster_id": "c",
        "broker_id": broker_id,
        "time": at(ms),
        "file_id": "f",
        "byte_offset": number,
        "line_no": number,
        "fact_no": 0,
    }


def config_rows() -> list[Row]:
    def value(number: int, broker_id: int, ms: float, scope: str, key: str, text: str | None) -> Row:
        return source(number, broker_id, ms) | {"scope": scope, "key": key, "value": text}

    return [
        value(1, 1, 0, "broker", "min.insync.replicas", "2"),
        value(2, 1, 10, "broker", "min.insync.replicas", "3"),
        value(3, 1, 20, "broker_dynamic", "min.insync.replicas", "1"),
        value(4, 1, 10, "broker", "listeners", None),
        value(5, 1, 10, "broker", "log.dirs", "/data"),
        value(6, 9, 10, "broker", "process.roles", "[controller]"),
    ]


def found(number: int, **changes: Any) -> Row:
    """A row of gold.violations."""
    return {
        "cluster_id": "c",
        "finding_id": f"v{number}",
        "rule_id": "committed-data-lost",
        "severity": "violation",
        "implied_by": None,
        "topic": "orders",
        "partition": 0,
        "leader_epoch": 5,
        "offset_start": number,
        "offset_end": number + 1,
        "time": at(number),
        "brokers": [1, 2],
        "cause": None,
        "known_bug": None,
        "records": None,
        "message": "it was lost",
    } | changes


def proof(finding_id: str, position: int) -> Row:
    """A row of gold.evidence."""
    return {
        "cluster_id": "c",
        "finding_id": finding_id,
        "position": position,
        "time": at(position),
        "broker_id": 1,
        "file": "1/server.log",
        "file_id": "f",
        "line_no": position + 1,
        "byte_offset": 100 * position,
        "text": f"line {position}",
    }


def result(rule_id: str = "committed-data-lost", verdict: str = "clean", **changes: Any) -> Row:
    """A row of gold.rule_results."""
    counts = dict.fromkeys(("checked", "cases", "observations", "open_cases", "left_out"), 0)
    told = {"cluster_id": "c", "rule_id": rule_id, "verdict": verdict, "reason": None, "error": None, "doubts": []}
    return told | counts | changes


def collected(*groups: Row, quantiles: dict[str, Row] | None = None, **changes: Any) -> Collected:
    """What the queries give of next to nothing."""
    values: dict[str, Any] = {
        "groups": list(groups),
        "quantiles": quantiles or {},
        "blamed": (),
        "singled_out": {},
        "timeline": [],
        "interval_s": 10,
        "worst": [],
        "latency": {},
        "files": [],
        "coverage": [],
        "unparsed": [],
        "configs": [],
        "lifecycle": [],
        "delta_versions": {},
    }
    return Collected(**values | changes)


def quantile(values: list[float], q: float) -> float | None:
    """Linear interpolation between the two nearest ranks."""
    if not values:
        return None
    ordered = sorted(values)
    place = q * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def happened(incident_id: str) -> Row:
    """A row of ``gold.incidents``."""
    texts = {"kind": "broker_died", "severity": "major", "sentence": "Broker 1 died.", "advice": ""}
    return {
        "cluster_id": "c",
        "incident_id": incident_id,
        "harm": 1,
        "start_time": at(0),
        "end_time": None,
        **texts,
        "broker_ids": [1],
        "partitions": 0,
        "topic_partitions": [],
        "figures": [],
    }
