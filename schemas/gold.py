"""Gold: the answers.

Gold rows hold nothing that depends on how the input was cut into files: no file ids, no offsets in files. What they
say of a request is found again in silver by broker, connection, correlation id and line time.
"""

from __future__ import annotations

from highwater.schemas.table import load_table

#: Classes of `DELAYED_OPERATIONS.class` (design section 4).
CLASSES = ("explained", "jitter", "late", "unobservable", "contradicted")

DELAYED_OPERATIONS = load_table("gold.delayed_operations")
REQUEST_PHASES = load_table("gold.request_phases")
REPLICA_BLAME = load_table("gold.replica_blame")

#: Of `COVERAGE.outcome`.
MISSING = "missing"

COVERAGE = load_table("gold.coverage")
HOLES = load_table("gold.holes")
RUNS = load_table("gold.runs")

TABLES = (DELAYED_OPERATIONS, REQUEST_PHASES, REPLICA_BLAME, COVERAGE, HOLES, RUNS)
