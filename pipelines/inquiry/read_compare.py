"""Reads one side of a comparison: counts and sums, whatever the number of rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from pipelines.inquiry.compare import Kind, Side
from pipelines.inquiry.quantiles import rounded
from pipelines.inquiry.read_clusters import named, require_one_between
from pipelines.inquiry.read_lines import ARRIVED, FAR_US, OF_CLUSTER, instant
from pipelines.lake.reader import LakeReader
from pipelines.report import queries
from pipelines.report.figures import PHASES, PRODUCE


def side(
    reader: LakeReader, name: str, cluster: str | None, since_us: int | None, until_us: int | None, slow_ms: int
) -> Side:
    """What a lake has of an interval.

    Args:
        cluster: name or id of one; None: of the only one that has requests then.
        slow_ms: a wait beyond this counts.

    Raises:
        InputError: the lake has no such cluster, or requests of several.
    """
    since, until = instant(since_us or 0), instant(FAR_US if until_us is None else until_us)
    cluster_id = None if cluster is None else named(reader, cluster)
    require_one_between(reader, cluster_id, since, until)
    parameters = {"since": since, "until": until, "cluster": cluster_id}
    latency: dict[Kind, list[tuple[float, int]]] = defaultdict(list)
    for row in reader.rows(
        f"""SELECT api, acks, {rounded("total_time_ms")} AS ms, count(*) AS n FROM gold_request_phases
            WHERE {ARRIVED} GROUP BY ALL""",
        **parameters,
    ):
        latency[row["api"], row["acks"]].append((row["ms"], row["n"]))
    means = ", ".join(f"avg({column}) AS {phase}" for phase, column in PHASES.items())
    phases = reader.rows(
        f"SELECT api, acks, {means} FROM gold_request_phases WHERE {ARRIVED} GROUP BY ALL", **parameters
    )
    waits = reader.rows(
        f"""SELECT blamed AS replica, count(*) AS operations, sum(slow_wait_ms) / 1000 AS slow_s
            FROM ({queries.operations(ARRIVED, slow_ms)}) WHERE kind = '{PRODUCE}' GROUP BY 1""",
        **parameters,
    )
    events, of_broker = _events(reader, parameters)
    findings = reader.rows(
        f"""SELECT severity, rule_id, count(*) AS n FROM gold_violations
            WHERE time >= $since AND time < $until AND {OF_CLUSTER} AND implied_by IS NULL GROUP BY ALL""",
        **parameters,
    )
    return Side(
        name=name,
        seconds=_seconds(reader, parameters, since_us, until_us),
        # A lake of an older version has one result for all clusters.
        verdicts={
            row["rule_id"]: row["verdict"]
            for row in reader.rows("SELECT * FROM gold_rule_results")
            if cluster_id in (None, row.get("cluster_id", cluster_id))
        },
        findings={(row["severity"], row["rule_id"]): row["n"] for row in findings},
        latency=latency,
        phases={(row["api"], row["acks"]): {phase: row[phase] for phase in PHASES} for row in phases},
        waits={row["replica"]: (row["operations"], row["slow_s"]) for row in waits},
        events=events,
        of_broker=of_broker,
    )


def _seconds(reader: LakeReader, parameters: dict[str, Any], since_us: int | None, until_us: int | None) -> float:
    if since_us is not None and until_us is not None:
        return (until_us - since_us) / 1e6
    (row,) = reader.rows(
        f"""SELECT (epoch_us(max(arrival_time)) - epoch_us(min(arrival_time))) / 1e6 AS s FROM gold_request_phases
            WHERE {ARRIVED}""",
        **parameters,
    )
    return float(row["s"] or 0.0)


def _events(reader: LakeReader, parameters: dict[str, Any]) -> tuple[dict[str, int], dict[int, dict[str, int]]]:
    """How often each thing happened, in all and to each broker."""
    rows = reader.rows(
        f"""WITH happened AS (
              SELECT replica_id AS broker, 'left an ISR' AS what, change_time AS time, cluster_id FROM gold_isr_timeline
              WHERE change = 'shrink' AND class <> 'not_observed'
              UNION ALL
              SELECT replica_id, 'joined an ISR', change_time, cluster_id FROM gold_isr_timeline
              WHERE change = 'expand' AND class <> 'not_observed'
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
