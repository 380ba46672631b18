"""What was asked of the data, and which files are kept out of it. A layer of its own: it is about the other layers.

Gold is what an audit answers, and is written anew by each; these tables are a history, and no audit writes them anew.
"""

from __future__ import annotations

from schemas.table import LONG, STRING, STRINGS, TIMESTAMP, TableSpec, column, required

QUALITY_RESULTS = TableSpec(
    layer="quality",
    name="results",
    comment="One row per expectation and batch: what one ingest brought in, or what was released together.",
    columns=(
        required("batch_id", STRING, "Ingest (run_id of bronze.log_files, bronze.data_files), or the id of a release"),
        required("expectation_id", STRING, "Expectation, see docs/quality.md"),
        required("table_name", STRING, "Table, with its layer, or the ledger that was asked"),
        required("severity", STRING, "critical: the files are quarantined; warning"),
        required("outcome", STRING, "met or failed"),
        required("decided_by", STRING, "screen: the pass over all rows; detail: Great Expectations, too"),
        required("row_count", LONG, "Rows asked"),
        required("unexpected_count", LONG, "Rows that broke it"),
        required("file_ids", STRINGS, "Files of those rows, ascending"),
        column("sample", STRING, "Some of those rows, as JSON"),
        required("validated_time", TIMESTAMP, "When"),
    ),
    keys=("batch_id", "expectation_id"),
    checks={
        "severity_known": "severity IN ('critical', 'warning')",
        "outcome_known": "outcome IN ('met', 'failed')",
    },
)

QUARANTINED_FILES = TableSpec(
    layer="quality",
    name="quarantined_files",
    comment="What became of files whose rows failed a critical expectation, one row per step. A file is in quarantine "
    "if it is quarantined in the latest batch that is told of it.",
    columns=(
        required("file_id", STRING, "bronze.log_files.file_id, or bronze.data_files.file_id"),
        required("path", STRING, "Path of the file as it was found"),
        required("batch_id", STRING, "Batch in which it failed; of a release the batch in which it is read again"),
        required("action", STRING, "quarantined or released"),
        required("expectation_ids", STRINGS, "Critical expectations that its rows failed"),
        column("reason", STRING, "The first of them in words"),
        required("time", TIMESTAMP, "When"),
    ),
    keys=("file_id", "batch_id", "action"),
    checks={"action_known": "action IN ('quarantined', 'released')"},
)

TABLES = (QUALITY_RESULTS, QUARANTINED_FILES)
