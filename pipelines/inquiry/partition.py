"""The life of a partition: its epochs, leaders and in-sync sets, truncations, and when it was unavailable. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pipelines.base.values import iso_utc
from pipelines.inquiry.answer import Answer, Lines, Point, Row, Rows, Table, listed, place_of, plural, steps_of
from pipelines.inquiry.replica_logs import ReplicaLog, Tenure

#: Steps that are told; the question can be narrowed by times.
STEPS_MAX = 400

#: An election this much later than the failure has its time told.
_ELECTED_LATER_US = 1_000_000
_REASONS = {
    "failed": "it failed",
    "fenced": "it was fenced",
    "log_dir_failed": "its log directory failed",
    "controlled_shutdown": "it shuts down",
    "found_by_new_controller": "a new controller found it dead",
    "preferred": "the preferred replica takes over",
    "reassignment": "its replicas are reassigned",
    "unknown": "no line tells why",
}
_STRATEGIES = {
    "offline": "from the ISR",
    "preferred": "as the preferred replica",
    "controlled_shutdown": "from the ISR",
    "reassign": "by the reassignment",
    "unclean": "uncleanly",
    "elr": "from the eligible leader replicas",
    "last_known_leader": "as the last known leader",
}


@dataclass(frozen=True)
class PartitionRows:
    """Rows of one partition.

    Attributes:
        tenures: its epochs.
        isr_changes: of ``gold.isr_timeline``, with a line where there is one.
        failovers, truncations, availability, findings: rows of gold.
        logs: what its replicas hold at the end.
        since_us, until_us: what is asked for; None: no bound.
    """

    cluster_id: str
    topic: str
    partition: int
    tenures: tuple[Tenure, ...]
    isr_changes: Rows
    failovers: Rows
    truncations: Rows
    availability: Rows
    findings: Rows
    logs: tuple[ReplicaLog, ...]
    since_us: int | None = None
    until_us: int | None = None

    def holds(self, time_us: int) -> bool:
        """Whether a time is asked for."""
        return (self.since_us is None or time_us >= self.since_us) and (
            self.until_us is None or time_us < self.until_us
        )


def rows_shown(rows: PartitionRows) -> list[Row]:
    """The lines that the answer shows."""
    return [step.row for step in _asked_for(rows)[:STEPS_MAX] if step.row is not None]


def answer(rows: PartitionRows, lines: Lines) -> Answer:
    """Its life in words."""
    points = _asked_for(rows)
    return Answer(
        title=f"{place_of(rows.topic, rows.partition)} of cluster {rows.cluster_id}",
        is_shown=bool(points or rows.logs),
        sentences=tuple(_sentences(rows, len(points))),
        steps=steps_of(points[:STEPS_MAX], lines),
        tables=tuple(_tables(rows)),
    )


def _sentences(rows: PartitionRows, steps: int) -> Iterator[str]:
    if not rows.tenures:
        yield "No line tells who led it."
    else:
        leaders = listed(dict.fromkeys(tenure.leader for tenure in rows.tenures))
        yield f"{plural(len(rows.tenures), 'leader epoch')} in the logs, led by broker {leaders}."
    unclean = [row for row in rows.failovers if row["strategy"] == "unclean"]
    if unclean:
        yield f"{plural(len(unclean), 'leader')} elected uncleanly: out of sync, so that records may be lost."
    removed = [row for row in rows.truncations if row["records_removed"]]
    if removed:
        records = sum(row["records_removed"] for row in removed)
        yield f"Replicas truncated {plural(records, 'offset')} of their logs, in {plural(len(removed), 'truncation')}."
    for state in ("offline", "under_min_isr"):
        windows = [row for row in rows.availability if row["state"] == state]
        if windows:
            seconds = sum(row["duration_ms"] or 0 for row in windows) / 1000
            open_ended = "" if all(row["ended_time"] for row in windows) else ", and to the end of the logs"
            named = "without leader" if state == "offline" else "under min.insync.replicas"
            yield f"{named} {len(windows)} times, {seconds:,.1f} s in all{open_ended}.".capitalize()
    violations = [row for row in rows.findings if row["severity"] == "violation"]
    yield f"{plural(len(violations), 'violation')}, {plural(len(rows.findings) - len(violations), 'other finding')}."
    if steps > STEPS_MAX:
        yield f"{steps - STEPS_MAX} later steps are left out; narrow the question with --from and --until."


def _asked_for(rows: PartitionRows) -> list[Point]:
    return sorted((step for step in _steps(rows) if rows.holds(step.time_us)), key=lambda step: step.time_us)


def _steps(rows: PartitionRows) -> Iterator[Point]:
    for tenure in rows.tenures:
        row = tenure.row
        start = "" if tenure.start_offset is None else f" from offset {tenure.start_offset}"
        watermark = "" if row["high_watermark"] is None else f", high watermark {row['high_watermark']}"
        isr = f", ISR {listed(row['isr'])}" if row["isr"] else ""
        yield Point(row["time"], f"Broker {tenure.leader} takes up epoch {tenure.epoch}{start}{watermark}{isr}.", row)
    for row in rows.isr_changes:
        how = "left" if row["change"] == "shrink" else "joined"
        isr = f"{listed(row['isr_before'])} became {listed(row['isr_after'])}"
        what = f"Broker {row['replica_id']} {how} the ISR: {isr}, by the {row['made_by']} ({row['class']})."
        yield Point(row["change_time"], what, row)
    for row in rows.failovers:
        time_us = next((row[name] for name in ("detected_time", "elected_time", "taken_up_time") if row[name]), None)
        if time_us is not None:
            why = _REASONS.get(row["reason"], row["reason"])
            yield Point(time_us, f"Broker {row['old_leader']} leads no more: {why}; {_elected(row, time_us)}.")
    for row in rows.truncations:
        if row["logged_offset"] is not None and row["records_removed"]:
            below = ", below its high watermark" if row["below_high_watermark"] else ""
            what = (
                f"Broker {row['broker_id']} truncated its log from {row['log_end_offset']} to {row['logged_offset']}"
                f"{below} (rule {row['rule']}, {row['class']})."
            )
            yield Point(row["logged_time"] or row["started_time"], what)
    for row in rows.availability:
        until = "the end of the logs" if row["ended_time"] is None else iso_utc(row["ended_time"])[11:-1]
        state = "It has no leader" if row["state"] == "offline" else "Its ISR is under min.insync.replicas"
        refused = f"; {plural(row['produces_refused'], 'produce')} refused" if row["produces_refused"] else ""
        yield Point(row["started_time"], f"{state} until {until}{refused}.")
    for row in rows.findings:
        if row["time"] is not None and row["implied_by"] is None:
            command = f"highwater trace finding {row['finding_id'][:8]}"
            yield Point(row["time"], f"{row['severity']} {row['rule_id']} ({command}): {row['message']}")


def _elected(row: Row, since_us: int) -> str:
    """Who was elected, how, and when if that took its time."""
    if row["new_leader"] is None:
        return "nobody is elected"
    strategy = row["strategy"]
    how = f" {_STRATEGIES.get(strategy, strategy)}" if strategy else ""
    is_later = row["elected_time"] is not None and row["elected_time"] - since_us >= _ELECTED_LATER_US
    when = f", at {iso_utc(row['elected_time'])[11:-1]}" if is_later else ""
    return f"broker {row['new_leader']} is elected{how}{when}"


def _tables(rows: PartitionRows) -> Iterator[Table]:
    if rows.logs:
        yield Table(
            title="replicas at the end of the logs",
            rows=tuple(
                {
                    "replica": log.replica_id,
                    "log_end_min": log.end_min,
                    "log_end_max": log.end_max,
                    "last_epoch": log.last_epoch,
                    "high_watermark": log.high_watermark,
                }
                for log in rows.logs
            ),
        )
