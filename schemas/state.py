"""State: what runs leave to the next one, by the number of the run, and the ledger of what each replayed and why.

The state lies in the lake as any other table, and not in a stream's checkpoint: what an earlier run left is the state
before a file that came late, and SQL reads it.
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
