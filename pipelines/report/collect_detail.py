"""Reads the lake for the page: tables that the driver can hold, and of larger ones aggregates. No query of Spark's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.arrow_rows import dicts
from highwater.pipelines.base.config import Config
from highwater.pipelines.base.values import instant
from highwater.pipelines.kafka.replayed import drop_past
from highwater.pipelines.kafka.strays import is_possible
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.lake.lake_reads import match_cluster, open_reader
from highwater.pipelines.lake.lines import Place, find_request_lines, find_texts, match_places
from highwater.pipelines.lake.reader import LakeReader
from highwater.pipelines.report import queries
from highwater.pipelines.report import small_tables as small
from highwater.pipelines.report.cluster import clocks, events, lives, settings, stories
from highwater.pipelines.report.cluster.parts import Cluster
from highwater.pipelines.report.cubes import queries as of_cubes
from highwater.pipelines.report.cubes.assemble import make_cubes, read_cell_rows
from highwater.pipelines.report.cubes.intervals import Intervals, choose_intervals
from highwater.pipelines.report.cubes.parts import Cubes
from highwater.pipelines.report.detail import Cost, Detail, RuleText
from highwater.pipelines.report.figures import Rows
from highwater.pipelines.rules.registry import RULES
from highwater.schemas import bronze, silver
from highwater.schemas.clocks import CLOCK_BOUNDS
from highwater.schemas.controllers import AVAILABILITY, FAILOVERS
from highwater.schemas.gold import DELAYED_OPERATIONS, REQUEST_PHASES
from highwater.schemas.isr import ISR_TIMELINE
from highwater.schemas.table import TableSpec
from highwater.schemas.timelines import BROKER_TIMELINE

_OF_FILES = ("file_id", "path", "cluster_id", "broker_id", "size_bytes", "line_count", "first_time", "last_time")
_OF_OPERATIONS = DELAYED_OPERATIONS.column_names
_OF_EVENTS = ("time", "cluster_id", "broker_id", "event")
_CONTROLLER_EVENTS = (
    *("controller_elected", "controller_resigned"),
    *("broker_fenced", "broker_failed", "broker_unfenced", "broker_registered"),
)
_OF_FAILOVERS = (
    *("cluster_id", "topic", "partition", "sequence", "reason", "strategy", "old_leader", "new_leader", "outcome"),
    *("detected_time", "elected_time", "taken_up_time", "detected_to_taken_up_ms", "detected_to_serving_ms"),
    "approximate",
)


def collect_detail(
    lake: Lake,
    config: Config,
    since: datetime | None,
    until: datetime | None,
    started: datetime | None,
    cluster_id: str | None = None,
) -> Detail:
    """Return the details that only the HTML page shows.

    Args:
        since, until: arrival of operations and requests, end exclusive. None for no bound.
        started: start of the command, for its duration. None if unknown.
        cluster_id: the only cluster to show. None for all clusters.
    """
    tables = _Tables(lake, cluster_id)
    bounds = small.make_bounds(since, until)
    files = tables.rows(bronze.LOG_FILES, *_OF_FILES)
    aggregates, worst = _read_aggregates(tables, config, files, bounds)
    now = datetime.now(UTC)
    return Detail(
        cluster=_make_cluster(tables, worst, files),
        cubes=aggregates,
        rules=list_rule_texts(),
        cost=Cost(
            bytes=sum(row["size_bytes"] or 0 for row in files),
            lines=sum(row["line_count"] or 0 for row in files),
            made=None if started is None else now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            seconds=None if started is None else round((now - started).total_seconds(), 1),
        ),
    )


def list_rule_texts() -> tuple[RuleText, ...]:
    """Return the texts of all rules."""
    names = RuleText.model_fields.keys() - {"rule_id"}
    return tuple(
        RuleText(rule_id=rule.rule_id, **{name: getattr(rule.texts, name) for name in names}) for rule in RULES
    )


class _Tables:
    """The tables of a lake, limited to one cluster if a cluster is given."""

    def __init__(self, lake: Lake, cluster_id: str | None) -> None:
        self.lake = lake
        self.cluster_id = cluster_id

    def rows(self, spec: TableSpec, *columns: str, where: pc.Expression | None = None) -> Rows:
        """Return rows of a table that is small enough for the driver."""
        return dicts(self.lake.rows(spec, *columns, where=match_cluster(self.cluster_id, where)))


# --------------------------------------------------------------------- aggregates


def _read_aggregates(
    tables: _Tables, config: Config, files: Rows, bounds: small.WindowBounds
) -> tuple[Cubes | None, dict[str, int]]:
    """Return (aggregates of the window's requests, arrival times in us of requests with a history, by operation id).

    The aggregates are None if the logs contain no times.
    """
    needed = match_cluster(tables.cluster_id, bounds.arrived())
    reader = open_reader(tables.lake, [(DELAYED_OPERATIONS, needed), (REQUEST_PHASES, needed)])
    where = queries.match_window(bounds, tables.cluster_id)
    (arrivals,) = reader.rows(of_cubes.select_arrivals(where))
    intervals = _make_intervals(files, bounds, [time for time in arrivals.values() if time is not None])
    if intervals is None:
        return None, {}
    operations = queries.select_operations(where, config.latency.slow_ms)
    worst = reader.rows(of_cubes.select_stories(operations, intervals))
    cells = read_cell_rows(reader.rows, operations, queries.select_requests(where), intervals)
    return make_cubes(cells, intervals), {row["operation_id"]: row["arrival_us"] for row in worst}


def _make_intervals(files: Rows, bounds: small.WindowBounds, arrivals: list[int]) -> Intervals | None:
    """Return intervals that cover all times of the logs within the window. None if the logs contain no times."""
    ends = (row[name] for row in files for name in ("first_time", "last_time"))
    times = [*(end for end in ends if end is not None and is_possible(end)), *arrivals]
    first = max(min(times, default=0), bounds.since_us or 0)
    last = max(times, default=0) if bounds.until_us is None else min(max(times, default=0), bounds.until_us - 1)
    return choose_intervals(first, last, len({row["broker_id"] for row in files})) if times else None


# ------------------------------------------------------------------------ cluster


def _make_cluster(tables: _Tables, worst: dict[str, int], files: Rows) -> Cluster:
    lifecycle = tables.rows(silver.BROKER_LIFECYCLE, *_OF_EVENTS)
    of_controllers = tables.rows(
        silver.CONTROLLER_EVENTS,
        *(*_OF_EVENTS, "subject_broker_id", "brokers", "detail"),
        where=pc.field("event").isin(_CONTROLLER_EVENTS),
    )
    controller = drop_past(of_controllers, lifecycle)
    isr = tables.rows(
        ISR_TIMELINE,
        *("cluster_id", "topic", "partition", "replica_id", "change", "change_time", "made_by"),
    )
    moved = tables.rows(FAILOVERS, *_OF_FAILOVERS)
    led = tables.rows(
        silver.LEADER_AND_ISR,
        *("time", "cluster_id", "topic", "partition", "leader", "leader_epoch"),
    )
    configs = open_reader(tables.lake, [(silver.BROKER_CONFIGS, None)]).rows(
        small.SQL["configs"], cluster=tables.cluster_id
    )
    timeline = tables.rows(BROKER_TIMELINE, *BROKER_TIMELINE.column_names)
    happened, events_left_out = events.make_events(lifecycle, controller, isr, moved)
    windows, windows_left_out = events.make_unavailable(tables.rows(AVAILABILITY, *AVAILABILITY.column_names))
    failovers, failovers_left_out = events.make_failovers(moved)
    differing, settings_left_out = settings.make_settings(configs)
    pairs, pairs_left_out = clocks.make_clocks(tables.rows(CLOCK_BOUNDS, *CLOCK_BOUNDS.column_names))
    return Cluster(
        lives=lives.make_lives(timeline),
        leaders=events.make_leaders(led),
        events=happened,
        unavailable=windows,
        failovers=failovers,
        restarts=lives.make_restarts(timeline, isr),
        settings=differing,
        clocks=pairs,
        stories=stories.make_stories(_read_story_rows(tables, worst, {row["file_id"]: row["path"] for row in files})),
        left_out={
            "events": events_left_out,
            "unavailable": windows_left_out,
            "failovers": failovers_left_out,
            "settings": settings_left_out,
            "clocks": pairs_left_out,
        },
    )


def _read_story_rows(tables: _Tables, worst: dict[str, int], paths: dict[str, str]) -> stories.StoryRows:
    if not worst:
        return stories.StoryRows()
    where = pc.field("operation_id").isin(pa.array(list(worst), pa.string())) & _match(small.ARRIVAL, worst.values())
    operations = tables.rows(DELAYED_OPERATIONS, *_OF_OPERATIONS, where=where)
    places = {operation_id: place for place, operation_id in enumerate(worst)}
    operations.sort(key=lambda row: places[row["operation_id"]])
    reader = _open_story_reader(tables.lake, operations)
    bare = stories.StoryRows(
        operations=operations,
        requests=_read_requests(reader, operations),
        fetches=stories.read_fetches_near(reader, operations),
        paths=paths,
    )
    return replace(bare, texts=_read_texts(tables, stories.find_lines(bare)))


def _open_story_reader(lake: Lake, operations: Rows) -> LakeReader:
    """Return a DuckDB reader with the requests and fetches around the given operations. Too large tables are empty."""
    times = [time for row in operations for time in (row["handled_time"], row["completed_time"])]
    taken_up = pc.field("dequeued_time")
    around = taken_up >= instant(min(times) - stories.BEFORE_US)
    around &= taken_up <= instant(max(times) + stories.AFTER_US)
    of_lines = _match("time", (row["line_time"] for row in operations))
    needed = [(silver.PRODUCE_REQUESTS, of_lines), (silver.REQUESTS, of_lines), (silver.REPLICA_FETCHES, around)]
    return open_reader(lake, searched=needed)


def _read_requests(reader: LakeReader, operations: Rows) -> Rows:
    names = ("time", "broker_id", "connection", "correlation_id")
    known = [row for row in operations if row["connection"] is not None and row["correlation_id"] is not None]
    keys = [(row["line_time"], *(row[name] for name in names[1:])) for row in known]
    return [dict(zip(names, key, strict=True)) | line for key, line in find_request_lines(reader, keys).items()]


def _read_texts(tables: _Tables, lines: dict[Place, int]) -> dict[Place, str]:
    if not lines:
        return {}
    where = match_places(lines) & _match("time", lines.values())
    return find_texts(open_reader(tables.lake, searched=[(bronze.LOG_LINES, where)]), lines)


def _match(name: str, times_us: Iterable[int]) -> pc.Expression:
    """Return a filter for rows at these times, us. Files are sorted by time, so it also skips parts of files."""
    return pc.field(name).isin(pa.array(sorted(set(times_us)), pa.timestamp("us", "UTC")))
