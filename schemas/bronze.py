"""Bronze: what was read, byte for byte addressable."""

from __future__ import annotations

from schemas import columns as c
from schemas.table import INT, INTS, LONG, STRING, TIMESTAMP, TableSpec, column, required

LOG_KINDS = ("server", "state-change", "controller", "kafka-request", "log-cleaner", "other")
LEVELS = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")

LOG_FILES = TableSpec(
    layer="bronze",
    name="log_files",
    comment="One row per distinct log file content that was read.",
    columns=(
        required("file_id", STRING, "First 32 hex digits of the SHA-256 of the decompressed content"),
        required(
            "path",
            STRING,
            "Path as it was found, first name under which this content appeared; in a bundle: logs.tgz!/b1/server.log; "
            "of a file in which lines of several sources are mixed: compose.log#kafka1_1",
        ),
        required("sha256", STRING, "SHA-256 of the file's bytes as stored (compressed if it was)"),
        required("size_bytes", LONG, "Size as stored, in bytes"),
        required("kind", STRING, "server, state-change, controller, kafka-request, log-cleaner, other"),
        column(
            "layout",
            STRING,
            "Conversion pattern of its lines, behind the names of its wrappers: [%d] %p %m (%c), cri/[%d] %p %m (%c)",
        ),
        column(
            "cluster_id",
            STRING,
            "Cluster the file belongs to: its folder's name in ingest.clusters, else the id that lines tell, else "
            "'unknown'",
        ),
        column("logged_cluster_id", STRING, "Cluster id that its own lines tell; null if they tell none"),
        column("broker_id", INT, "Broker (node) that wrote the file; null if nothing tells"),
        column("broker_ids", INTS, "Brokers whose lines it holds, where there are several; broker_id is null then"),
        column("broker_id_source", STRING, "Evidence of the broker id: content, environment, listener, folder, name"),
        column("kafka_version", STRING, "Kafka version as logged at start"),
        column("mode", STRING, "zookeeper or kraft"),
        required("line_count", LONG, "Lines; one that several records share counts for each of them"),
        required("record_count", LONG, "Log records: a line that starts with a time, with its continuation lines"),
        column("first_time", TIMESTAMP, "Time of the first record"),
        column("last_time", TIMESTAMP, "Time of the last record"),
        column(
            "resolution_us",
            LONG,
            "How fine its times are, microseconds: 1000000 (whole seconds), 1000 or 1; null counts as 1000",
        ),
        column("encoding", STRING, "Encoding that the file was converted from; null if it is UTF-8"),
        column(
            "excerpt",
            STRING,
            "Why lines were left out of the file: levels (none below WARN), logger or partition (of one only), numbers "
            "(of lines, with gaps); null if nothing shows it",
        ),
        column("problem", STRING, "What is wrong with the file and what to do, if anything: truncated gzip, ..."),
        required("run_id", STRING, "Run that read it"),
    ),
    keys=("file_id",),
    checks={"size_not_negative": "size_bytes >= 0"},
    words={"kind": LOG_KINDS, "mode": ("zookeeper", "kraft"), "excerpt": ("levels", "logger", "partition", "numbers")},
)

LOG_LINES = TableSpec(
    layer="bronze",
    name="log_lines",
    comment="One row per log record: a line with its continuation lines (stack traces) joined.",
    columns=(
        required("file_id", STRING, "Content id of the file"),
        required("byte_offset", LONG, "Offset of the record's first byte in the decompressed file"),
        required("line_no", LONG, "Number of the record's first line, from 1"),
        c.CLUSTER,
        column("broker_id", INT, "Broker (node) id"),
        required("kind", STRING, "Kind of file: server, state-change, controller, kafka-request, log-cleaner, other"),
        column("time", TIMESTAMP, "Time that the logger wrote, taken as the configured zone; null if unreadable"),
        column("level", STRING, "TRACE, DEBUG, INFO, WARN, ERROR, FATAL"),
        column("logger", STRING, "Logger (class) name"),
        required("line_count", INT, "Physical lines joined in this record"),
        column(
            "problem",
            STRING,
            "layout: no layout fits; binary: not text; half_line: cut by the end of the file; "
            "oversized: longer than the limit, text cut; continuation: lines without the record "
            "that they continue (time is null); doubtful: it may be the text of another, which a client chose; "
            "foreign.compose and the like: lines of another program",
        ),
        column("message", STRING, "The message, without time, level and logger; continuation lines after newlines"),
    ),
    keys=("file_id", "byte_offset"),
    bounded_by=("time",),
    checks={"line_from_one": "line_no >= 1", "offset_not_negative": "byte_offset >= 0"},
    words={"kind": LOG_KINDS, "level": LEVELS},
)

UNREAD_FILES = TableSpec(
    layer="bronze",
    name="unread_files",
    comment="One row per log, or bundle of logs, that a run found and could not read, until a run reads it.",
    columns=(
        required("path", STRING, "Path as it was found; in a bundle: logs.zip!/b1/server.log"),
        required("problem", STRING, "Why it was not read, and what to do"),
        column("modified_time", TIMESTAMP, "When it was last changed: it has no lines after that; null: not known"),
        required("run_id", STRING, "Run that could not read it"),
    ),
    keys=("path",),
)

PROCESS_REMARKS = TableSpec(
    layer="bronze",
    name="process_remarks",
    comment="One row per crash and long pause of a JVM, from the hs_err files and GC logs in the folders of the logs.",
    columns=(
        required("path", STRING, "Path of the file as it was found"),
        required("line", LONG, "Number of the line in it, from 1"),
        required("kind", STRING, "jvm_crash, or gc_pause: half a second or more, at most the 1,000 longest of a file"),
        required("start_time", TIMESTAMP, "Instant of the crash, or start of the pause"),
        required("duration_us", LONG, "Length of the pause in microseconds; 0 of a crash"),
        required("text", STRING, "The line, or the reason of the crash"),
        required("run_id", STRING, "Run that read the file last"),
    ),
    keys=("path", "line"),
)

TABLES = (LOG_FILES, LOG_LINES, UNREAD_FILES, PROCESS_REMARKS)
