"""Gold: how far the clocks of brokers are apart."""

from __future__ import annotations

from schemas import columns as c
from schemas.table import DOUBLE, INT, LONG, STRING, TIMESTAMP, TableSpec, column, required

CLOCK_BOUNDS = TableSpec(
    layer="gold",
    name="clock_bounds",
    comment="One row per pair of brokers and window with lines that must have come one before the other: bounds on the "
    "difference of their clocks, that of broker_b less that of broker_a. Raw times stay as they are.",
    columns=(
        c.CLUSTER,
        required("broker_a", INT, "The smaller broker id"),
        required("broker_b", INT, "The larger broker id"),
        required("window_start", TIMESTAMP, "Start of the window, on the clock of broker_a"),
        required("window_s", INT, "Its length, seconds"),
        column("lowest_ms", DOUBLE, "The difference was more than this at lowest_time; null where nothing tells"),
        column("lowest_time", TIMESTAMP, "When, on the clock of broker_a"),
        column(
            "lowest_by",
            STRING,
            "What came first. follower: its line that it starts in an epoch, before the leader had its first fetch of "
            "that epoch; state: the controller's line of a state, before the broker's that it received it",
        ),
        column("highest_ms", DOUBLE, "The difference was less than this at highest_time; null where nothing tells"),
        column("highest_time", TIMESTAMP, "When, on the clock of broker_a"),
        column("highest_by", STRING, "As lowest_by"),
        required("links", LONG, "Lines of one broker in the window that came before lines of the other"),
        required(
            "changed_ms",
            DOUBLE,
            "By how much at least the difference changed since changed_since, by step or drift; 0: nothing shows it",
        ),
        column("changed_since", TIMESTAMP, "Instant of the earlier bound that contradicts, on the clock of broker_a"),
    ),
    feeds_changes=True,
    keys=("cluster_id", "broker_a", "broker_b", "window_start"),
    ordered_by="window_start",
    checks={
        "pair_in_order": "broker_a < broker_b",
        "bounded": "lowest_ms IS NOT NULL OR highest_ms IS NOT NULL",
        "change_is_proven": "CASE WHEN changed_since IS NULL THEN changed_ms = 0 ELSE changed_ms <> 0 END",
    },
    dated_by=("window_start",),
)

TABLES = (CLOCK_BOUNDS,)
