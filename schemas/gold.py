"""Gold: the answers.

Gold rows hold nothing that depends on how the input was cut into files: no file ids, no offsets in files. What they
say of a request is found again in silver by broker, connection, correlation id and line time.
"""

from __future__ import annotations

from schemas import columns as c
from schemas.table import (
    BOOLEAN,
    DOUBLE,
    INT,
    INTS,
    LONG,
    STRING,
    TIMESTAMP,
    TableSpec,
    column,
    required,
    structs,
)

#: Classes of `DELAYED_OPERATIONS.class` (design section 4).
CLASSES = ("explained", "jitter", "late", "unobservable", "contradicted")

DELAYED_OPERATIONS = TableSpec(
    layer="gold",
    name="delayed_operations",
    comment="One row per operation that Kafka's purgatory may hold (acks=all appends, fetches): when the rules let it "
    "be answered, when it was, and what it waited for.",
    columns=(
        *c.OPERATION,
        required("operation", STRING, "produce: an acks=all append, whoever asked for it; fetch"),
        required("api", STRING, "API of the request: PRODUCE, FETCH, or a coordinator's: OFFSET_COMMIT, END_TXN, ..."),
        *c.OPERATION_REQUEST,
        column("timeout_ms", INT, "Timeout of a produce, maxWaitMs of a fetch"),
        column("transactional_id", STRING, "Transactional id"),
        required("error_codes", INTS, "Distinct error codes answered, ascending"),
        column("replica_id", INT, "Follower of a fetch; -1 for consumers; null for produces"),
        column("min_bytes", INT, "minBytes of a fetch"),
        column("isolation_level", INT, "Of a consumer's fetch: 0 read_uncommitted, 1 read_committed"),
        column(
            "waited_as",
            STRING,
            "Kafka's class of what waited: DelayedProduce, DelayedFetch, DelayedRemoteFetch; DeferredEvent of a "
            "coordinator with threads of its own; null: it did not wait (docs/waits.md)",
        ),
        column(
            "read_from",
            STRING,
            "Where a consumer's fetch was read: leader, follower (KIP-392), tier (the remote one, KIP-405); null for "
            "followers' fetches and produces",
        ),
        column("parked", BOOLEAN, "A fetch waited in purgatory; null for produces"),
        column("bytes_known", BOOLEAN, "The sizes that decided a fetch are known, not bounded; null for produces"),
        column("response_bytes", LONG, "Records in the response of a fetch, bytes"),
        required(
            "succeeded",
            BOOLEAN,
            "All partitions answered without error; where the log has no response, as the rules predict",
        ),
        required("predicted_error_codes", INTS, "Distinct error codes that the rules give, ascending"),
        *c.PREDICTED,
        column(
            "residual_ms", DOUBLE, "0 within the interval (widened by the log's 1 ms tick), else the signed distance"
        ),
        required("class", STRING, "explained, jitter, late, unobservable, contradicted"),
        column(
            "class_reason",
            STRING,
            "Why: lost_wake_up, leader_stalled, throttled (KIP-73), late_log_line, fetch_not_logged, coarse_times "
            "(whole seconds), ...",
        ),
        column("known_bug", STRING, "JIRA of a bug of the running version with this signature"),
        required(
            "cause",
            STRING,
            "high_watermark, isr_change, leader_only, at_once, timer, leadership_lost, error, unknown; of fetches also "
            "bytes, no_partitions, no_wait, session_error, fenced_epoch, diverging_epoch, preferred_replica, "
            "beyond_end, older_segment, throttled; of fetches read from the tier remote_read (it answered), "
            "remote_error (a read from there failed), remote_timer (it did not answer in time)",
        ),
        column("closing_topic", STRING, "Topic of the partition that was last"),
        column("closing_partition", INT, "Partition that was last"),
        column("closing_replica", INT, "Replica whose fetch, or whose leaving the ISR, closed the operation"),
        column("closing_role", STRING, "isr_member, outside_isr, left_isr, leader"),
        required("wait_ms", DOUBLE, "From handled to answered (remoteTimeMs)"),
        column("wait_for_fetch_ms", DOUBLE, "1: no fetch of the closing replica was there, until it came"),
        column("wait_carry_ms", DOUBLE, "2: the fetch that carried the records out: parked, response queue, send"),
        column("wait_follower_ms", DOUBLE, "3: follower's append and way back, until its next fetch arrived"),
        column("wait_closing_fetch_ms", DOUBLE, "4: that fetch in the leader's request queue, then handled"),
        column("wait_completion_ms", DOUBLE, "5: from satisfied to answered"),
        column("wait_isr_change_ms", DOUBLE, "Instead of 1 to 4, where a change of the ISR closed it"),
        column("wait_without_closing_ms", DOUBLE, "The wait had the closing replica not been waited for"),
        required(
            "partitions",
            structs(
                c.TOPIC,
                required("partition", INT, "Partition"),
                column("leader_epoch", INT, "Leader epoch; null where its start is not in the log"),
                column("base_offset", LONG, "Base offset answered"),
                column("required_offset", LONG, "Last offset + 1: logged if logged, else derived"),
                column("required_offset_logged", LONG, "requiredOffset of the broker's TRACE lines"),
                column("required_offset_derived", LONG, "From the offsets that follow"),
                column("error_code", INT, "Error answered"),
                column("predicted_error_code", INT, "Error that the rules give"),
                column("lowest_time", TIMESTAMP, "Predicted: not before"),
                column("highest_time", TIMESTAMP, "Predicted: not after"),
                required("cause", STRING, "As above"),
                column("closing_replica", INT, "As above"),
                required("isr", INTS, "ISR at that moment"),
                required("isr_inferred", BOOLEAN, "No line told the ISR: who fetched was taken for a member"),
                column("missing", STRING, "Evidence that is missing"),
                column("awaiting_logged", INTS, "Last replicas that the leader logged as awaited (T3)"),
            ),
            "Partitions of a produce; empty for fetches",
        ),
    ),
    feeds_changes=True,
    keys=("cluster_id", "broker_id", "operation_id"),
    bounded_by=("arrival_time",),
    ordered_by="arrival_time",
    checks={
        "class_known": "class IN ('explained', 'jitter', 'late', 'unobservable', 'contradicted')",
        "interval_in_order": "lowest_time IS NULL OR lowest_time <= highest_time",
    },
    dated_by=("arrival_time",),
)

REQUEST_PHASES = TableSpec(
    layer="gold",
    name="request_phases",
    comment="One row per request: where its time went.",
    columns=(
        c.CLUSTER,
        required("broker_id", INT, "Broker that answered; -1 where nothing tells"),
        c.ARRIVAL,
        required("api", STRING, "API name"),
        c.LINE_TIME,
        c.CONNECTION,
        c.CORRELATION_ID,
        c.CLIENT_ID,
        column("acks", INT, "acks of a produce"),
        column("replica_id", INT, "Follower of a fetch; -1 for consumers"),
        required("total_time_ms", DOUBLE, "totalTimeMs"),
        required("request_queue_time_ms", DOUBLE, "Waiting for a request handler"),
        required("local_time_ms", DOUBLE, "In the request handler"),
        required("remote_time_ms", DOUBLE, "In purgatory, or waiting for another broker"),
        required("throttle_time_ms", DOUBLE, "Throttled by a quota"),
        required("response_queue_time_ms", DOUBLE, "Waiting for a network thread"),
        required("send_time_ms", DOUBLE, "Sending the response"),
        required("unaccounted_ms", DOUBLE, "total_time_ms less the sum of the phases"),
        column("waited_for", STRING, "Kind of what it waited for, by its API (docs/waits.md); null: less than 1 ms"),
    ),
    feeds_changes=True,
    keys=("cluster_id", "broker_id", "connection", "correlation_id", "line_time", "api"),
    bounded_by=("arrival_time",),
    ordered_by="arrival_time",
    dated_by=("arrival_time",),
)

REPLICA_BLAME = TableSpec(
    layer="gold",
    name="replica_blame",
    comment="What acks=all appends waited for, per interval of log time: one row per replica that closed operations.",
    columns=(
        c.CLUSTER,
        required("kind", STRING, "produce: clients' acks=all produces; coordinator: what coordinators append"),
        required("interval_start", TIMESTAMP, "Start of the interval, by arrival of the request"),
        required("interval_s", INT, "Its length, seconds"),
        required("replica_id", INT, "Replica that was waited for; the leader where nobody else was; -1 unknown"),
        required("role", STRING, "isr_member, outside_isr, left_isr, leader, unknown"),
        required("operations", LONG, "Operations that it closed"),
        required("slow_operations", LONG, "Of them, those that waited longer than slow_ms"),
        required("wait_ms_total", DOUBLE, "Their waiting time"),
        required("slow_wait_ms_total", DOUBLE, "The part of it beyond slow_ms per operation"),
        required("wait_ms_p50", DOUBLE, "Median wait"),
        required("wait_ms_p99", DOUBLE, "99th percentile of the wait"),
        required("share_operations", DOUBLE, "Of all operations of that kind and interval, 0 to 1"),
        required("share_wait", DOUBLE, "Of all waiting time of that kind and interval, 0 to 1"),
        required("share_slow_wait", DOUBLE, "Of all waiting time beyond slow_ms of that kind and interval, 0 to 1"),
        required("singled_out", BOOLEAN, "It stands out among its kind: see pipelines.timing.latency.blame"),
    ),
    keys=("cluster_id", "kind", "interval_start", "replica_id", "role"),
    ordered_by="interval_start",
    dated_by=("interval_start",),
)

#: Of `COVERAGE.outcome`.
MISSING = "missing"

COVERAGE = TableSpec(
    layer="gold",
    name="coverage",
    comment="How many log records of a broker fell to which template.",
    columns=(
        c.CLUSTER,
        required("broker_id", INT, "Broker; -1 where nothing tells"),
        *c.COUNTED,
        required("template", STRING, "Template id, or the masked text of an unparsed line"),
        required("outcome", STRING, "typed, known, unparsed; missing: not there to be read, see gold.holes"),
        required("line_count", LONG, "Records; of those that are missing the least number that there were, 1 at least"),
    ),
    feeds_changes=True,
    keys=("cluster_id", "broker_id", "kind", "logger", "level", "template", "outcome"),
)

HOLES = TableSpec(
    layer="gold",
    name="holes",
    comment="One row per hole in the logs: what must have been written, and was not read. No rule is clean for it.",
    columns=(
        c.CLUSTER,
        required("broker_id", INT, "Broker whose log it is; -1 where nothing tells"),
        required("kind", STRING, "Kind of log, as in bronze.log_files"),
        required(
            "reason",
            STRING,
            "lines_missing: numbers of requests are left out on connections that live on; nul_bytes: or other filling; "
            "forged: records that may be text of a client; records_cut; refused: records with values or times out of "
            "range; not_read: a file that could not be read, or not to its end; not_understood: requests that no "
            "grammar reads; no_log: a broker has not a kind of log that others have; silent: a log lacks lines while "
            "its broker is at work; ends_early, begins_late: a request log ends, or begins, while its broker goes on",
        ),
        column("since_time", TIMESTAMP, "After this line; null: not known"),
        column("until_time", TIMESTAMP, "Before this line; null: not known"),
        column("records", LONG, "So many records at least; null: nothing counts them"),
        required("message", STRING, "What is missing, and what to do"),
    ),
    feeds_changes=True,
    keys=("cluster_id", "broker_id", "kind", "reason", "since_time", "message"),
    checks={
        "reason_known": "reason IN ('lines_missing', 'nul_bytes', 'forged', 'records_cut', 'refused', 'silent', "
        "'not_read', 'not_understood', 'no_log', 'ends_early', 'begins_late')"
    },
)

RUNS = TableSpec(
    layer="gold",
    name="runs",
    comment="Ledger: one row per distinct input that was audited by one version of the code under one configuration.",
    columns=(
        required("run_id", STRING, "Hash of inputs, code version and configuration: the same audit has the same id"),
        required("started_time", TIMESTAMP, "When it was first run"),
        required("ended_time", TIMESTAMP, "When that ended"),
        required("code_version", STRING, "Version of highwater"),
        required("config_hash", STRING, "Hash of the effective configuration"),
        required("rules_fingerprint", STRING, "Components of highwater with their numbers"),
        required("verdict", STRING, "clean, violated, inconclusive"),
        required("files", LONG, "Files audited"),
        required("lines", LONG, "Lines audited"),
        required("operations", LONG, "Rows of gold.delayed_operations"),
    ),
    feeds_changes=True,
    keys=("run_id",),
)

TABLES = (DELAYED_OPERATIONS, REQUEST_PHASES, REPLICA_BLAME, COVERAGE, HOLES, RUNS)
