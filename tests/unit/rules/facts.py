"""Facts by hand, and what rules make of them."""

from __future__ import annotations

from typing import Any

from highwater.pipelines.rules.partition_audit import PartitionAudit, RuleOutcome
from highwater.pipelines.rules.rule import Case, Rule, Settings
from highwater.schemas import audit_facts as a
from highwater.schemas.audit_facts import Fact

SECOND = 1_000_000
_PLACES = {a.OPERATION: 0}


def fact(kind: str, second: float, broker_id: int | None = None, **fields: Any) -> Fact:
    """A fact of a line; its place in the file follows from its time."""
    place = {} if kind in _PLACES else {"file_id": f"b{broker_id}", "byte_offset": int(second * 1000)}
    for name in ("isr", "replicas"):
        if name in fields and fields[name] is not None:
            fields[name] = tuple(fields[name])
    return Fact(kind, int(second * SECOND), broker_id, **(place | fields))


def leads(second: float, broker_id: int, epoch: int, offset: int, **fields: Any) -> Fact:
    return fact(
        a.LEADERSHIP,
        second,
        broker_id,
        name="leader_start",
        leader=broker_id,
        leader_epoch=epoch,
        offset=offset,
        **fields,
    )


def follows(second: float, broker_id: int, epoch: int, **fields: Any) -> Fact:
    return fact(a.LEADERSHIP, second, broker_id, name="follower_start", leader_epoch=epoch, **fields)


def decided(second: float, epoch: int, partition_epoch: int, leader: int, isr: tuple[int, ...], **fields: Any) -> Fact:
    """A state as the controller sends it."""
    return fact(
        a.LEADERSHIP,
        second,
        9,
        name="controller",
        leader=leader,
        leader_epoch=epoch,
        partition_epoch=partition_epoch,
        isr=isr,
        **({"replicas": (1, 2, 3)} | fields),
    )


def acked(second: float, broker_id: int, offset: int, end: int | None = None, **fields: Any) -> Fact:
    """An acks=all produce that was answered without error."""
    micros = int(second * SECOND)
    given = {"name": "explained", "error_code": 0, "latest_us": micros, "log_append_time_us": micros} | fields
    return fact(a.OPERATION, second, broker_id, offset=offset, end_offset=end or offset + 1, **given)


def settings(**fields: Any) -> Settings:
    return Settings(**({"version": lambda *_: "3.9.1"} | fields))


def min_isr(value: int) -> Settings:
    return settings(min_insync_replicas=lambda broker_id, time_us: value)


def outcome(rule: Rule, facts: list[Fact], told: Settings | None = None) -> RuleOutcome:
    """What one rule makes of the facts of one partition, given in any order."""
    audit = PartitionAudit(told or settings(), [rule])
    by_offset = (a.OPERATION, a.ANSWER, a.BATCH)

    def order(one: Fact) -> tuple[Any, ...]:
        offset = one.offset if one.kind in by_offset and one.offset is not None else -1
        return (a.RANK[one.kind], offset, one.kind != a.BATCH, one.time_us)

    for one in sorted(facts, key=order):
        audit.add(one)
    return next(iter(audit.finish()))


def cases(rule: Rule, facts: list[Fact], told: Settings | None = None) -> list[Case]:
    found = outcome(rule, facts, told)
    assert found.error is None, found.error
    return found.cases
