"""Resume state of runs, by run number, and the ledger of their replays.

State is kept in tables, not in a stream's checkpoint: SQL reads it, and a run can resume from the state before a late
file.
"""

from __future__ import annotations

from highwater.schemas.table import load_table

# Values of `FOLDS.kind`.
PARTITION = "partition"
SESSION = "session"
EVIDENCE = "evidence"
CONNECTION = "connection"
WATCH = "watch"
WAKE = "wake"
OUTCOME = "outcome"

FOLDS = load_table("state.folds")
AUDITED = load_table("state.audited")
RUNS = load_table("state.runs")
EXPIRIES = load_table("state.expiries")
UPGRADES = load_table("state.upgrades")
INVENTORY = load_table("state.inventory")
DIGESTS = load_table("state.digests")

TABLES = (FOLDS, AUDITED, RUNS, EXPIRIES, UPGRADES, INVENTORY, DIGESTS)
