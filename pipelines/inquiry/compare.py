"""Comparison of two intervals or two lakes: changes, largest first, with their causes if the tables show them."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from highwater.pipelines.base.plain import ms, number, share
from highwater.pipelines.base.values import instant
from highwater.pipelines.inquiry import quantiles as q
from highwater.pipelines.inquiry.answer import Answer, Row, Table, join_values
from highwater.pipelines.inquiry.read_lines import ARRIVED, FAR_US, named, require_one_between
from highwater.pipelines.lake.reader import LakeReader
from highwater.pipelines.report import queries
from highwater.pipelines.report.figures import PHASES, PRODUCE
from highwater.pipelines.report.small_tables import OF_CLUSTER

#: Minimum requests of a kind whose change of latency is reported.
REQUESTS_MIN = 20
#: Minimum ratio of two p99 that is explained.
RATIO_MIN = 1.2
#: Difference of two means that is shown.
DIFFERENCE_MIN_MS = 0.05
#: Rows of a table.
ROWS_MAX = 30

#: API and acks of a request.
Kind = tuple[str, int | None]
#: Figures of a kind without requests.
NO_REQUESTS: Row = {"requests": 0, **q.name_quantiles(None)}


@dataclass(frozen=True)
class Side:
    """Figures of one side of a comparison."""

    name: str  #: as it was asked for
    seconds: float  #: how long it is: the interval, or from the first request to the last one
    verdicts: Mapping[str, str]  #: by rule, verdict of the whole lake
    findings: Mapping[tuple[str, str], int]  #: by severity and rule, how many have their time in it
    #: by kind of request how many ``requests``; in milliseconds the quantiles of how long they took, by the names of
    #: `pipelines.inquiry.quantiles.QUANTILES`, and the means of their phases, by `pipelines.report.figures.PHASES`
    latency: Mapping[Kind, Row]
    #: by the last replica to acknowledge acks=all produces, those answered with an error included: operations, and
    #: seconds waited beyond `slow_ms` each
    waits: Mapping[int, tuple[int, float]]
    events: Mapping[str, int]  #: number of each event, by its name in words; `of_broker`: per broker
    of_broker: Mapping[int, Mapping[str, int]]

    def compute_slow_share(self, broker: int) -> float:
        """Return the share, 0 to 1, of slow waiting that was for one replica."""
        whole = sum(slow for _, slow in self.waits.values())
        return self.waits.get(broker, (0, 0.0))[1] / whole if whole else 0.0


def answer(before: Side, after: Side, slow_ms: int) -> Answer:
    """Return an answer with the changes from one side to the other."""
    is_shown = bool(before.latency or before.events) and bool(after.latency or after.events)
    sentences = [
        *_compare_verdicts(before, after),
        *_compare_latency(before, after),
        *_explain_latency(before, after, slow_ms),
    ]
    if not is_shown:
        empty = join_values(side.name for side in (before, after) if not side.latency and not side.events)
        sentences = [f"Neither requests nor events are in {empty}."]
    return Answer(
        title=f"A: {before.name} ({before.seconds:,.1f} s); B: {after.name} ({after.seconds:,.1f} s)",
        is_shown=is_shown,
        sentences=tuple(sentences),
        tables=tuple(table for table in _make_tables(before, after) if table.rows),
    )


def _compare_verdicts(before: Side, after: Side) -> Iterator[str]:
    changed = [
        rule for rule in before.verdicts if after.verdicts.get(rule, before.verdicts[rule]) != before.verdicts[rule]
    ]
    for rule in changed:
        yield f"{rule}: {before.verdicts[rule]} in A, {after.verdicts[rule]} in B."
    for severity in ("violation", "observation"):
        counts = [
            sum(number for (of, _), number in side.findings.items() if of == severity) for side in (before, after)
        ]
        if any(counts):
            sides = [number(many, severity) if many else "none" for many in counts]
            yield f"Findings: {sides[0]} in A, {sides[1]} in B."


def _format_kind(kind: Kind) -> str:
    api, acks = kind
    return api if acks is None else f"{api} acks={'all' if acks == -1 else acks}"


def _compare_latency(before: Side, after: Side) -> Iterator[str]:
    rows = [(ratio, row) for ratio, row in _list_latency_rows(before, after) if ratio is not None]
    if rows and _is_change(rows[0][0]):
        row = rows[0][1]
        yield f"Most changed: p99 of {row['request']}, {ms(row['p99_a'])} ms in A, {ms(row['p99_b'])} ms in B."
    elif rows:
        yield f"No p99 changed by {RATIO_MIN - 1:.0%} or more."


def _is_change(ratio: float | None) -> bool:
    return ratio is not None and ratio > 0 and abs(math.log(ratio)) >= math.log(RATIO_MIN)


def _explain_latency(before: Side, after: Side, slow_ms: int) -> Iterator[str]:
    """Yield sentences about why acks=all produces took longer on one side."""
    p99 = [side.latency.get(("PRODUCE", -1), NO_REQUESTS)["p99"] for side in (before, after)]
    if p99[0] is None or p99[1] is None or not _is_change(p99[1] / p99[0]):
        return
    slower, faster = (after, before) if p99[1] > p99[0] else (before, after)
    name, other = ("B", "A") if slower is after else ("A", "B")
    per_minute = {
        broker: (slow / (slower.seconds or 1) - faster.waits.get(broker, (0, 0.0))[1] / (faster.seconds or 1)) * 60
        for broker, (_, slow) in slower.waits.items()
    }
    worst = max(per_minute, key=lambda broker: per_minute[broker], default=None)
    if worst is None or per_minute[worst] <= 0:
        yield f"acks=all produces took longer in {name}; no replica accounts for it."
        return
    yield (
        f"acks=all produces took longer in {name}: {share(slower.compute_slow_share(worst))} of the waiting beyond "
        f"{slow_ms} ms was for broker {worst} ({share(faster.compute_slow_share(worst))} in {other})."
    )
    happened = {
        what: number
        for what, number in slower.of_broker.get(worst, {}).items()
        if number > faster.of_broker.get(worst, {}).get(what, 0)
    }
    if happened:
        times = join_values(f"{what} ({number} times)" if number > 1 else what for what, number in happened.items())
        yield f"New or more frequent in {name}: broker {worst} {times}."
    else:
        yield f"The logs hold no restart, election or ISR change of broker {worst} that explains it: only the waiting."


def _make_tables(before: Side, after: Side) -> Iterator[Table]:
    yield Table(
        title="latency, milliseconds, A -> B (p99.9: --format json)",
        rows=tuple(row for _, row in _list_latency_rows(before, after)[:ROWS_MAX]),
    )
    yield Table(title="phases, mean milliseconds", rows=tuple(_list_phase_rows(before, after)[:ROWS_MAX]))
    yield Table(title="closing replica of acks=all produces, A -> B", rows=tuple(_list_wait_rows(before, after)))
    yield Table(title="events", rows=tuple(_list_count_rows(before.events, after.events, "event")[:ROWS_MAX]))
    named = [{f"{of} {rule}": number for (of, rule), number in side.findings.items()} for side in (before, after)]
    yield Table(title="findings", rows=tuple(_list_count_rows(named[0], named[1], "finding")[:ROWS_MAX]))


def _list_latency_rows(before: Side, after: Side) -> list[tuple[float | None, dict[str, Any]]]:
    """Return (ratio of p99, row) per kind of request, most changed first. The ratio is None if unknown."""
    rows = []
    for kind in sorted({*before.latency, *after.latency}, key=_format_kind):
        first, second = (side.latency.get(kind, NO_REQUESTS) for side in (before, after))
        row: dict[str, Any] = {"request": _format_kind(kind)}
        for name in ("requests", *q.QUANTILES):
            row |= {f"{name}_a": first[name], f"{name}_b": second[name]}
        enough = min(first["requests"], second["requests"]) >= REQUESTS_MIN
        ratio = second["p99"] / first["p99"] if enough and first["p99"] and second["p99"] is not None else None
        rows.append((ratio, row | {"change_p99": _format_ratio(ratio)}))
    return sorted(rows, key=lambda row: -abs(math.log(row[0])) if row[0] else 0.0)


def _format_ratio(ratio: float | None) -> str | None:
    """Return a ratio as ``3.5x``. None for None."""
    return None if ratio is None else f"{ratio:,.1f}x" if ratio >= 1 else f"{ratio:.2f}x"


def _list_phase_rows(before: Side, after: Side) -> list[dict[str, Any]]:
    rows = []
    for kind in sorted({*before.latency} & {*after.latency}, key=_format_kind):
        if min(side.latency[kind]["requests"] for side in (before, after)) < REQUESTS_MIN:
            continue
        for phase in PHASES:
            first, second = before.latency[kind][phase], after.latency[kind][phase]
            if abs(second - first) >= DIFFERENCE_MIN_MS:
                row = {
                    "request": _format_kind(kind),
                    "phase": phase,
                    "a": first,
                    "b": second,
                    "difference": second - first,
                }
                rows.append(row)
    return sorted(rows, key=lambda row: -abs(row["difference"]))


def _list_wait_rows(before: Side, after: Side) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for broker in sorted({*before.waits, *after.waits}):
        counts = [side.waits.get(broker, (0, 0.0)) for side in (before, after)]
        rows.append(
            {
                "replica": "unknown" if broker < 0 else str(broker),
                "operations_a": counts[0][0],
                "operations_b": counts[1][0],
                "slow_wait_s_a": counts[0][1],
                "slow_wait_s_b": counts[1][1],
                "share_a": share(before.compute_slow_share(broker)),
                "share_b": share(after.compute_slow_share(broker)),
            }
        )
    return sorted(rows, key=lambda row: -abs(row["slow_wait_s_b"] - row["slow_wait_s_a"]))


def _list_count_rows(first: Mapping[str, int], second: Mapping[str, int], what: str) -> list[dict[str, Any]]:
    rows = [(name, first.get(name, 0), second.get(name, 0)) for name in sorted({*first, *second})]
    return [{what: name, "a": a, "b": b} for name, a, b in sorted(rows, key=lambda row: -abs(row[2] - row[1]))]


def side(
    reader: LakeReader, name: str, cluster: str | None, since_us: int | None, until_us: int | None, slow_ms: int
) -> Side:
    """Return the figures of a time range of a lake.

    Args:
        cluster: name or id of a cluster. None for the only one with requests in the range.
        since_us, until_us: the range, us since the epoch, end exclusive. None for no bound.
        slow_ms: waits longer than this count as slow.

    Raises:
        InputError: the lake has no such cluster, or requests of several.
    """
    since, until = instant(since_us or 0), instant(FAR_US if until_us is None else until_us)
    cluster_id = None if cluster is None else named(reader, cluster)
    require_one_between(reader, cluster_id, since, until)
    parameters = {"since": since, "until": until, "cluster": cluster_id}
    means = ", ".join(f"avg({column}) AS {phase}" for phase, column in PHASES.items())
    latency = reader.rows(
        f"""SELECT api, acks, count(*) AS requests, {q.build_quantile_sql("total_time_ms")} AS ticks, {means}
            FROM gold_request_phases WHERE {ARRIVED} GROUP BY api, acks""",
        **parameters,
    )
    waits = reader.rows(
        f"""SELECT blamed AS replica, count(*) AS operations, sum(slow_wait_ms) / 1000 AS slow_s
            FROM ({queries.select_operations(ARRIVED, slow_ms)}) WHERE kind = '{PRODUCE}' GROUP BY 1""",
        **parameters,
    )
    events, of_broker = _count_events(reader, parameters)
    findings = reader.rows(
        f"""SELECT severity, rule_id, count(*) AS n FROM gold_violations
            WHERE time >= $since AND time < $until AND {OF_CLUSTER} AND implied_by IS NULL GROUP BY ALL""",
        **parameters,
    )
    return Side(
        name=name,
        seconds=_measure_seconds(reader, parameters, since_us, until_us),
        # A lake of an older version has one result for all clusters.
        verdicts={
            row["rule_id"]: row["verdict"]
            for row in reader.rows("SELECT * FROM gold_rule_results")
            if cluster_id in (None, row.get("cluster_id", cluster_id))
        },
        findings={(row["severity"], row["rule_id"]): row["n"] for row in findings},
        latency={(row["api"], row["acks"]): row | q.name_quantiles(row["ticks"]) for row in latency},
        waits={row["replica"]: (row["operations"], row["slow_s"]) for row in waits},
        events=events,
        of_broker=of_broker,
    )


def _measure_seconds(
    reader: LakeReader, parameters: dict[str, Any], since_us: int | None, until_us: int | None
) -> float:
    if since_us is not None and until_us is not None:
        return (until_us - since_us) / 1e6
    (row,) = reader.rows(
        f"""SELECT (epoch_us(max(arrival_time)) - epoch_us(min(arrival_time))) / 1e6 AS s FROM gold_request_phases
            WHERE {ARRIVED}""",
        **parameters,
    )
    return float(row["s"] or 0.0)


def _count_events(reader: LakeReader, parameters: dict[str, Any]) -> tuple[dict[str, int], dict[int, dict[str, int]]]:
    """Return (counts by event, counts by broker and event)."""
    rows = reader.rows(
        f"""WITH happened AS (
              SELECT replica_id AS broker, 'left an ISR' AS what, change_time AS time, cluster_id FROM gold_isr_timeline
              WHERE change = 'shrink' AND class <> 'not_observed' AND committed_time IS NOT NULL
              UNION ALL
              SELECT replica_id, 'joined an ISR', change_time, cluster_id FROM gold_isr_timeline
              WHERE change = 'expand' AND class <> 'not_observed' AND committed_time IS NOT NULL
              UNION ALL
              SELECT old_leader, concat('lost a leadership: ', reason),
                     coalesce(detected_time, elected_time, taken_up_time), cluster_id FROM gold_failovers
              UNION ALL
              SELECT new_leader, 'was elected uncleanly', coalesce(elected_time, taken_up_time), cluster_id
              FROM gold_failovers WHERE strategy = 'unclean'
              UNION ALL
              SELECT broker_id, CASE event WHEN 'starting' THEN 'started' ELSE 'shut down' END, time, cluster_id
              FROM silver_broker_lifecycle WHERE event IN ('starting', 'shut_down')
              UNION ALL
              SELECT NULL, concat('partition ', replace(state, '_', ' ')), started_time, cluster_id
              FROM gold_availability)
            SELECT broker, what, count(*) AS n FROM happened
            WHERE time >= $since AND time < $until AND {OF_CLUSTER} GROUP BY ALL ORDER BY broker, what""",
        **parameters,
    )
    events: Counter[str] = Counter()
    of_broker: dict[int, dict[str, int]] = defaultdict(dict)
    for row in rows:
        named = row["what"] if row["broker"] is None else f"broker {row['broker']} {row['what']}"
        events[named] += row["n"]
        if row["broker"] is not None:
            of_broker[row["broker"]][row["what"]] = row["n"]
    return dict(events), dict(of_broker)
