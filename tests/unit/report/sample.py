"""A report made by hand."""

from typing import Any

from highwater.pipelines.incidents.classes import class_of
from highwater.pipelines.report.figures import PHASES, SPLIT
from highwater.pipelines.report.headline import add_headline
from highwater.pipelines.report.measures import (
    ApiOperations,
    Blame,
    CoordinatorOperations,
    FetchOperations,
    Interval,
    Judged,
    Latency,
    Operations,
    OperationsByKind,
    PhaseTimes,
    ReaderGroup,
    RequestLatency,
    ResidualQuantiles,
    TotalQuantiles,
    WidthQuantiles,
    WorstOperation,
)
from highwater.pipelines.report.model import (
    Broker,
    ClusterVerdict,
    Coverage,
    Evidence,
    Finding,
    Incident,
    IncidentBug,
    InputFile,
    NotCheckable,
    Provenance,
    Report,
    RuleResult,
    UnparsedTemplate,
    Window,
)

TIME = "2026-11-20T14:05:00.000Z"


def judged(**changes: Any) -> dict[str, Any]:
    values: dict[str, Any] = {
        "observed": 1000,
        "replayed": 990,
        "explained": 980,
        "jitter": 7,
        "late": 3,
        "unobservable": 10,
        "contradicted": 0,
        "interval_width_ms": WidthQuantiles(p50=1.0, p99=3.5),
        "by_cause": {"high_watermark": 990, "unknown": 10},
        "residual_ms": ResidualQuantiles(p50=0.0, p95=0.0, p99=1.0, p999=12.0, max=5800.25),
        "within_ms": {"1": 0.97, "5": 0.98, "20": 0.985},
        "succeeded": 999,
        "with_error": 1,
        "late_reasons": {"lost_wake_up": 3},
        "unobservable_reasons": {"fetch_not_logged": 10},
        "known_bugs": {"KAFKA-13091": 3},
    }
    return values | changes


def produce(**changes: Any) -> Operations:
    return Operations(**judged(worst=(worst(),)) | changes)


def reader(**changes: Any) -> ReaderGroup:
    values: dict[str, Any] = {
        "reader": "consumer",
        "min_bytes": 65536,
        "isolation_level": "read_committed",
        "observed": 1000,
        "parked": 900,
        "explained": 980,
        "jitter": 7,
        "late": 3,
        "unobservable": 10,
        "within_ms": {"1": 0.97, "5": 0.98, "20": 0.985},
        "by_cause": {"bytes": 900, "timer": 100},
        "read_from": "leader",
    }
    return ReaderGroup(**values | changes)


def fetch(**changes: Any) -> FetchOperations:
    causes = {"bytes": 900, "timer": 100}
    values = judged(by_cause=causes) | {
        "worst": (worst(cause="bytes", api="FETCH", closing_replica=None, closing_role=None),),
        "parked": Judged(**judged(by_cause=causes)),
        "cause_known": 0.999,
        "groups": (reader(reader="follower", min_bytes=None, isolation_level=None, read_from=None), reader()),
    }
    return FetchOperations(**values | changes)


def coordinator(**changes: Any) -> CoordinatorOperations:
    names = ("observed", "explained", "jitter", "late", "unobservable", "contradicted", "within_ms")
    api = ApiOperations(**{name: judged()[name] for name in names})
    values = judged() | {"worst": (worst(api="END_TXN"),), "by_api": {"END_TXN": api}}
    return CoordinatorOperations(**values | changes)


def operations(**changes: Any) -> OperationsByKind:
    values: dict[str, Any] = {"produce": produce(), "fetch": fetch(), "coordinator": coordinator()}
    return OperationsByKind(**values | changes)


def worst(**changes: Any) -> WorstOperation:
    values: dict[str, Any] = {
        "broker_id": 1,
        "client_id": "producer-1",
        "correlation_id": 17,
        "arrival_time": TIME,
        "wait_ms": 5801.0,
        "residual_ms": 5800.25,
        "topic": "orders",
        "partition": 3,
        "cause": "isr_change",
        "closing_replica": 2,
        "closing_role": "left_isr",
        "operation_class": "late",
        "class_reason": "lost_wake_up",
        "api": "PRODUCE",
    }
    return WorstOperation(**values | changes)


def latency(names: tuple[str, ...] = PHASES, **changes: Any) -> RequestLatency:
    values: dict[str, Any] = {
        "requests": 1000,
        "total_ms": TotalQuantiles(p50=4.0, p95=9.0, p99=52.25, p999=5801.0),
        "phases_ms": {name: PhaseTimes(mean=0.5, p99=2.0) for name in names},
        "phases_within_1_ms": 0.9995,
    }
    return RequestLatency(**values | changes)


def blame(broker_id: int = 2, **changes: Any) -> Blame:
    values: dict[str, Any] = {
        "broker_id": broker_id,
        "operations": 700,
        "share": 0.91,
        "wait_ms_total": 123456.789,
        "wait_ms_p99": 5800.0,
        "p99_ms_actual": 52.25,
        "p99_ms_without": 6.5,
        "cluster_id": "c",
        "role": {"isr_member": 690, "left_isr": 10},
        "operations_slow": 30,
        "slow_wait_ms_total": 23456.0,
        "share_wait": 0.8,
        "singled_out": True,
    }
    return Blame(**values | changes)


def broker(broker_id: int = 1, **changes: Any) -> Broker:
    values: dict[str, Any] = {
        "broker_id": broker_id,
        "cluster_id": "c",
        "kafka_version": "2.8.2",
        "mode": "zookeeper",
        "files": 5,
        "lines": 123456,
        "first_time": TIME,
        "last_time": "2026-11-20T14:06:00.000Z",
        "tier": "T1",
        "config": {"min.insync.replicas": "2", "listeners": None},
    }
    return Broker(**values | changes)


def rule(rule_id: str = "committed-data-lost", **changes: Any) -> RuleResult:
    values: dict[str, Any] = {"rule_id": rule_id, "verdict": "clean", "checked": 1234, "cases": 0}
    return RuleResult(**values | changes)


def finding(rule_id: str = "committed-data-lost", **changes: Any) -> Finding:
    values: dict[str, Any] = {
        "rule_id": rule_id,
        "topic": "orders",
        "partition": 3,
        "leader_epoch": 5,
        "offset_start": 12,
        "offset_end": 15,
        "time": TIME,
        "brokers": (1, 2),
        "message": "Offsets below the high watermark were truncated.",
        "evidence": (
            Evidence(file="1/server.log", line_no=7, byte_offset=512, text="Truncating to 12"),
            Evidence(file="2/server.log", line_no=9, byte_offset=700, text="Leader starts at 12"),
        ),
        "finding_id": "f1",
    }
    return Finding(**values | changes)


def incident(kind: str = "broker_died", **changes: Any) -> Incident:
    values: dict[str, Any] = {
        "incident_id": f"id-{kind}",
        "kind": kind,
        "severity": "major",
        "start_time": TIME,
        "end_time": "2026-11-20T14:05:16.300Z",
        "broker_ids": (3,),
        "partitions": 0,
        "topic_partitions": (),
        "sentence": "Broker 3 died without shutting down.",
        "advice": "Look at the kernel's log.",
        "caused_by": None,
        "known_bug": None,
        "figures": {"away_s": 16.3},
        "evidence": (
            Evidence(file="3/server.log", line_no=7, byte_offset=99, text="starting", time=TIME, broker_id=3),
        ),
        "cluster_id": "c",
    }
    values |= changes
    return Incident(**{"class_": class_of(values["kind"], values["severity"], values["figures"])} | values)


def audited(**changes: Any) -> Report:
    """A report with findings of every severity."""
    follows = finding("hw-regression", finding_id="f2", message="The high watermark fell.")
    values: dict[str, Any] = {
        "verdict": "violated",
        "rules": (
            rule(verdict="violated", cases=1),
            rule("late-completion", observations=3),
            rule("two-leaders-one-epoch", verdict="inconclusive", open_cases=1, reason="1 case cannot be decided"),
            rule("hw-above-isr", verdict="inconclusive", reason="needs evidence T2"),
        ),
        "incidents": (
            incident(),
            incident(
                "partitions_under_min_isr",
                severity="critical",
                sentence="Partition orders-3 had fewer in-sync replicas than min.insync.replicas.",
                caused_by="id-broker_died",
                topic_partitions=("orders-3",),
                partitions=1,
            ),
            incident("also_logged", severity="info", sentence="Broker 1 also logged at WARN twice: x", advice=""),
        ),
        "violations": (finding(cause="unclean_election", known_bug="KAFKA-1", records=3, implied=(follows,)),),
        "observations": tuple(
            finding("late-completion", finding_id=f"o{number}", offset_start=None, offset_end=None, evidence=())
            for number in range(3)
        ),
        "open_cases": (finding("two-leaders-one-epoch", finding_id="c", offset_end=None, time=None, brokers=()),),
        "coverage": report().coverage.model_copy(
            update={"not_checkable": (NotCheckable(rule_id="hw-above-isr", reason="needs evidence T2", needs="cmd"),)}
        ),
    }
    return report(**values | changes)


def report(**changes: Any) -> Report:
    values: dict[str, Any] = {
        "verdict": "clean",
        "inconclusive": (),
        "tier": "T1",
        "tier_by_broker": {"1": "T1"},
        "window": Window(since=TIME),
        "brokers": (broker(),),
        "coverage": Coverage(
            lines=1000,
            parsed=990,
            unparsed=10,
            share_parsed=0.99,
            not_checkable=(NotCheckable(rule_id="delayed-operations", reason="broker 3: no request log", needs="cmd"),),
            top_unparsed=(UnparsedTemplate(template="odd <n>", logger="kafka.Odd", count=10),),
        ),
        "operations": operations(),
        "latency": Latency(
            produce_acks_all=latency((*PHASES, *SPLIT), split=990),
            produce_acks_1=latency(),
            fetch_follower=latency(),
            fetch_consumer=latency(
                requests=0,
                total_ms=TotalQuantiles(p50=None, p95=None, p99=None, p999=None),
                phases_ms={name: PhaseTimes(mean=None, p99=None) for name in PHASES},
                phases_within_1_ms=None,
            ),
            end_txn=latency(),
            phases_within_1_ms=0.9995,
        ),
        "slow_ms": 20,
        "blame": (blame(), blame(-1, p99_ms_without=None, singled_out=False)),
        "blame_coordinator": (blame(3, operations=70, singled_out=False),),
        "timeline": (
            Interval(
                time=TIME,
                interval_s=10,
                observed=1000,
                explained=980,
                jitter=7,
                late=3,
                unobservable=10,
                contradicted=0,
                with_error=1,
                slow=30,
                total_ms_p99=52.25,
            ),
        ),
        "provenance": Provenance(
            run_id="r1",
            code_version="0.1.0",
            config_hash="c0ffee",
            rules_fingerprint="f00d",
            inputs=(InputFile(file="1/server.log.gz", sha256="ab" * 32),),
            delta_versions={"gold.delayed_operations": 3},
        ),
        "notes": ("Nothing else is checked.",),
        "problems": (),
    }
    return add_headline(Report(**values | changes))


def hostile(text: str) -> Report:
    """A report with one text wherever a text can come from logs, names of files or the configuration."""
    evidence = (Evidence(file=text, line_no=1, byte_offset=0, text=text),)
    found = finding(text, cluster_id=text, topic=text, message=text, cause=text, known_bug=text, evidence=evidence)
    found = found.model_copy(update={"implied": (found,)})
    bug = IncidentBug(id=text, fixed_in=text)
    names: dict[str, Any] = {"kind": text, "sentence": text, "advice": text, "topic_partitions": (text,)}
    names |= {"cluster_id": text, "known_bug": bug, "evidence": evidence, "figures": {text: 1}}
    return report(
        incidents=(incident(incident_id=text, **names), incident(incident_id="other", **names | {"caused_by": text})),
        clusters=(ClusterVerdict(cluster_id=text, verdict="clean", tier="T1", inconclusive=(text,)),) * 2,
        rules=(rule(text, reason=text),),
        violations=(found,),
        observations=(found,),
        open_cases=(found,),
        inconclusive=(text,),
        brokers=(broker(cluster_id=text, kafka_version=text, mode=text, config={text: text}),),
        coverage=Coverage(
            lines=1,
            parsed=0,
            unparsed=1,
            share_parsed=0.0,
            not_checkable=(NotCheckable(rule_id="delayed-operations", reason=text, needs=text),),
            top_unparsed=(UnparsedTemplate(template=text, logger=text, count=1),),
        ),
        operations=operations(
            produce=produce(
                by_cause={text: 1},
                late_reasons={text: 1},
                known_bugs={text: 1},
                worst=(worst(client_id=text, topic=text, class_reason=text, closing_role=text, cause=text),),
            ),
            fetch=fetch(groups=(reader(by_cause={text: 1}),)),
            coordinator=coordinator(by_api={}),
        ),
        blame=(blame(role={text: 1}),),
        blame_coordinator=(blame(role={text: 1}),),
        provenance=Provenance(
            run_id=text,
            code_version=text,
            config_hash=text,
            rules_fingerprint=text,
            inputs=(InputFile(file=text, sha256="ab" * 32),),
            delta_versions={text: 1},
        ),
        problems=(text,),
        notes=(text,),
    )
