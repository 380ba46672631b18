"""The suites: expectations of each table, by its declaration and by experience. Pure.

Asked is what no constraint of the table holds already: NOT NULL and CHECK are enforced when rows are written.

*Critical* is what can only be so if the data was read wrongly: a value that no grammar writes, a record that is there
twice or not at all. What a broken cluster, a lost file or a clock can make of correctly read logs is at most a
*warning*: it is the audit's to judge.

A value that is not among the declared words of its column was not written by this version, or is in the wrong column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike

from highwater.pipelines.base.errors import ConfigError
from highwater.pipelines.quality.derived import Previous
from highwater.pipelines.quality.expectation import (
    Expectation,
    Severity,
    expect_at_least,
    expect_contained,
    expect_known_value,
    expect_not_below,
    expect_not_null,
    expect_unique,
    name_table,
)
from highwater.pipelines.quality.ledger import LEDGERS
from highwater.schemas import bronze, silver
from highwater.schemas.data_files import DATA_FILES
from highwater.schemas.silver import data_dir
from highwater.schemas.table import TableSpec

#: Tables that hold what was read. Gold is computed from them, and judged by its own contracts.
ASKED: tuple[TableSpec, ...] = (bronze.LOG_FILES, bronze.LOG_LINES, DATA_FILES, *silver.TABLES, *data_dir.TABLES)
BY_TABLE = {spec.full_name: spec for spec in ASKED}

#: Columns of silver that count from zero wherever they are required, and partitions anywhere.
_FROM_ZERO = ("byte_offset", "fact_no", "partition")
_DURATIONS = (
    "total_time_ms",
    "request_queue_time_ms",
    "local_time_ms",
    "remote_time_ms",
    "throttle_time_ms",
    "response_queue_time_ms",
    "send_time_ms",
)
#: A follower's fetches on one connection, in the order of sending. A follower whose log diverges truncates it and
#: fetches from a lower offset (KIP-595).
_FETCHED_BEFORE = Previous(
    "fetch_offset",
    by=("file_id", "connection", "topic", "partition", "replica_id", "leader_epoch"),
    order=("correlation_id",),
    among=("source", "request"),
    breaks="diverging_end_offset",
)
#: What one broker said of one partition when it became its leader, epoch after epoch.
_STARTED_BEFORE = Previous(
    "start_offset",
    by=("cluster_id", "broker_id", "topic", "partition"),
    order=("leader_epoch", "time", "file_id", "byte_offset"),
    among=("role", "leader_start"),
)


_REQUESTS = (
    *(expect_at_least(column, 0, "warning") for column in _DURATIONS),
    expect_not_below("completed_time", "arrival_time", "no request is answered before it arrived"),
)
_ISR_IS_ASSIGNED = expect_contained(
    "isr_is_assigned", "isr", "replicas", "where a line tells both, every in-sync replica is an assigned one"
)

#: Questions of single tables.
_OF_TABLE: Mapping[str, Sequence[Expectation]] = {
    bronze.LOG_FILES.full_name: (
        expect_not_null("broker_id", "it is known which broker wrote the file"),
        expect_not_null("layout", "the file has a layout that is known"),
        expect_not_below("last_time", "first_time", "a file ends no earlier than it begins"),
    ),
    bronze.LOG_LINES.full_name: (expect_at_least("line_count", 1),),
    silver.LEADER_AND_ISR.full_name: (
        _ISR_IS_ASSIGNED,
        expect_at_least("leader", -2),
        expect_at_least("leader_epoch", -1),
        expect_not_below(
            "start_offset",
            "previous_start_offset",
            "from one leader epoch to the next, a broker does not start at a lower offset",
            _STARTED_BEFORE,
        ),
    ),
    silver.REPLICA_FETCHES.full_name: (
        expect_at_least("replica_id", 0),
        expect_not_below(
            "fetch_offset",
            "previous_fetch_offset",
            "within a leader epoch, a follower's fetches on one connection do not go back",
            _FETCHED_BEFORE,
        ),
    ),
    silver.APPENDS.full_name: (
        expect_not_below("last_offset", "first_offset", "an append ends no earlier than it begins"),
    ),
    silver.PRODUCE_REQUESTS.full_name: (expect_known_value("acks", (-1, 0, 1), "warning"), *_REQUESTS),
    silver.FETCH_REQUESTS.full_name: (
        expect_at_least("replica_id", -2, "warning"),
        expect_known_value("isolation_level", (0, 1), "warning"),
        *_REQUESTS,
    ),
    silver.REQUESTS.full_name: _REQUESTS,
    silver.PARTITION_STATES.full_name: (expect_at_least("leader", -2),),
    silver.REPLICA_STATES.full_name: (expect_at_least("replica_id", 0),),
    silver.CONTROLLER_EVENTS.full_name: (_ISR_IS_ASSIGNED,),
    silver.LINE_COUNTS.full_name: (expect_at_least("line_count", 1),),
    data_dir.LOG_BATCHES.full_name: (
        expect_not_below("last_offset", "base_offset", "a batch ends no earlier than it begins"),
        expect_not_below(
            "base_offset",
            "previous_last_offset",
            "batches of a segment come in the order of their offsets",
            Previous("last_offset", by=("file_id",), order=("byte_offset",)),
        ),
        expect_not_below(
            "leader_epoch",
            "previous_leader_epoch",
            "leader epochs of a segment do not go back",
            Previous("leader_epoch", by=("file_id",), order=("byte_offset",)),
        ),
    ),
    data_dir.METADATA_RECORDS.full_name: (_ISR_IS_ASSIGNED,),
}


def list_expectations(spec: TableSpec) -> Iterator[Expectation]:
    """Yield the checks of a table."""
    yield expect_unique(spec.keys)
    for column, words in spec.words.items():
        yield expect_known_value(column, words)
    if spec.layer == "silver":
        for column in _FROM_ZERO:
            if column in spec.column_names:
                yield expect_at_least(column, 0)
        if "line_no" in spec.column_names:
            yield expect_at_least("line_no", 1)
    yield from _OF_TABLE.get(spec.full_name, ())


#: Every table's suite, in the order of the tables.
SUITES: dict[str, tuple[Expectation, ...]] = {
    spec.full_name: name_table(spec.full_name, list_expectations(spec)) for spec in ASKED
}
EXPECTATIONS: dict[str, Expectation] = {
    expectation.expectation_id: expectation for suite in (*SUITES.values(), *LEDGERS.values()) for expectation in suite
}


def require_expectations(severity: Mapping[str, str], file: PathLike[str] | str) -> None:
    """Check the ids in a configuration.

    Args:
        severity: configured severity by check id.
        file: the configuration file.

    Raises:
        ConfigError: an id is unknown.
    """
    unknown = next((key for key in severity if key not in EXPECTATIONS), None)
    if unknown is not None:
        key = f'quality.severity."{unknown}"'
        raise ConfigError(file, key, f"{unknown!r} is not an expectation; docs/quality.md lists them")


def choose_severities(
    suite: Sequence[Expectation], severity: Mapping[str, str]
) -> tuple[tuple[Expectation, Severity], ...]:
    """Return the checks that are not disabled, with configured severities."""
    weighed: list[tuple[Expectation, Severity]] = []
    for expectation in suite:
        wanted = severity.get(expectation.expectation_id, expectation.severity)
        if wanted != "off":
            weighed.append((expectation, "critical" if wanted == "critical" else "warning"))
    return tuple(weighed)
