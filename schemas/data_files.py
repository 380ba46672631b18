"""Bronze: the files of data directories that were read."""

from __future__ import annotations

from schemas.table import INT, LONG, STRING, TableSpec, column, required

#: Of a partition's folder that has no suffix.
CURRENT = "current"
#: What the suffix of a partition's folder says, and `CURRENT`.
FOLDER_STATES = (CURRENT, "delete", "future", "stray")

DATA_FILES = TableSpec(
    layer="bronze",
    name="data_files",
    comment="One row per content of a file of a broker's data directory. A file that grew or was rewritten has several "
    "rows; the one of the latest run_id by (cluster_id, broker_id, directory, name) is the current one.",
    columns=(
        required(
            "file_id",
            STRING,
            "First 32 hex digits of the SHA-256 of cluster, broker, directory, name and sha256: the files of two "
            "replicas may be equal, and each is a witness",
        ),
        required("path", STRING, "Path as it was found, the first one under which this broker's file appeared"),
        required("sha256", STRING, "SHA-256 of the file's bytes as stored (compressed if it was)"),
        required("size_bytes", LONG, "Size as stored, in bytes"),
        required("content_bytes", LONG, "Size decompressed, in bytes"),
        required(
            "kind",
            STRING,
            "Name of the file for checkpoints and properties, with .tmp for a leftover; log-segment, "
            "metadata-segment, metadata-snapshot, bootstrap-snapshot",
        ),
        required("cluster_id", STRING, "Cluster, by meta.properties or the broker's logs; 'unknown' if nothing tells"),
        column("broker_id", INT, "Broker (node) whose data directory this is; null if nothing tells"),
        required("directory", STRING, "directory.id of the data directory; its path where it has none (before 3.7)"),
        required("name", STRING, "Path within the data directory, without .gz"),
        column("topic", STRING, "Topic of the partition's folder; null for a file of the whole directory"),
        column("partition", INT, "Partition of the folder"),
        column("replica_state", STRING, "current, delete, future, stray: what the name of the folder says"),
        column("valid_bytes", LONG, "Of a segment or snapshot: bytes up to the end of the last whole batch"),
        required("row_count", LONG, "Rows of silver that it gave"),
        column("problem", STRING, "What is wrong with the file, where, and what to do"),
        required("run_id", STRING, "Run that read it"),
    ),
    keys=("file_id",),
    words={"replica_state": FOLDER_STATES},
    checks={"size_not_negative": "size_bytes >= 0"},
)

TABLES = (DATA_FILES,)
