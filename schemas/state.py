"""State: what the replay carries from one run to the next, and the ledger of what each run replayed and why.

The state lies in the lake as any other table, and not in a stream's checkpoint: an older version of it is the state
before a file that came late, and SQL reads it.
"""

from __future__ import annotations

from schemas.table import BINARY, INT, INTS, LONG, STRING, STRINGS, TIMESTAMP, TableSpec, column, required

# Values of `CARRIED.kind`.
PARTITION = "partition"
SESSION = "session"
EVIDENCE = "evidence"
CONNECTION = "connection"
WATCH = "watch"
WAKE = "wake"
OUTCOME = "outcome"

CARRIED = TableSpec(
    layer="state",
    name="carried",
    comment="One row per thing that a replay goes on from: a partition on its leader, a connection's fetches, an "
    "operation still waiting. Replaced by every run; older versions are the states before late files.",
    columns=(
        required("kind", STRING, "partition, session, evidence, connection, watch, wake, outcome"),
        required("cluster_id", STRING, "Cluster"),
        required("broker_id", INT, "Broker whose log it comes from"),
        column("name", STRING, "topic-partition, or connection"),
        required("pending", LONG, "Operations that it holds and that are not decided, or not settled, yet"),
        column("last_time", TIMESTAMP, "Newest event in it"),
        column("row", STRING, "What it is, as JSON, where it is a row of a table"),
        column("state", BINARY, "What it is, as JSON of the replay's own objects, where it is a fold"),
    ),
    keys=("kind", "cluster_id", "broker_id", "name", "row"),
    checks={
        "kind_known": "kind IN ('partition', 'session', 'evidence', 'connection', 'watch', 'wake', 'outcome')",
        "row_or_state": "row IS NOT NULL OR state IS NOT NULL",
    },
)

AUDITED = TableSpec(
    layer="state",
    name="audited",
    comment="One row per partition that the rules have judged: what they go on from. Replaced by every run; its commit "
    "says up to where each broker's log is judged for good.",
    columns=(
        required("cluster_id", STRING, "Cluster"),
        required("topic", STRING, "Topic"),
        required("partition", INT, "Partition index"),
        required("brokers", INTS, "Brokers whose logs tell of it, ascending"),
        column("why_whole", STRING, "Why the next run judges it anew, over all its facts; null: it goes on"),
        column("state", BINARY, "What the rules hold of it, as JSON of their own objects"),
    ),
    keys=("cluster_id", "topic", "partition"),
    checks={"goes_on_or_says_why": "CASE WHEN state IS NULL THEN why_whole IS NOT NULL ELSE why_whole IS NULL END"},
)

#: Beside the kinds of `CARRIED`, in `ANCHORS`: what the ledger of replays was told by the run.
STAMP = "stamp"

ANCHORS = TableSpec(
    layer="state",
    name="anchors",
    comment="What a run carried to the next one, kept once a day of each cluster: where the replay begins of a cluster "
    "whose older days were dropped.",
    columns=(
        required("run_id", STRING, "Run that left it, gold.runs.run_id"),
        required(
            "kind",
            STRING,
            "As in state.carried; stamp: seals of the cluster and fingerprint of the run, as JSON in row",
        ),
        column("cluster_id", STRING, "Cluster; null for a stamp of all of them, as earlier versions left"),
        column("broker_id", INT, "Broker whose log it comes from; null for the stamp"),
        column("name", STRING, "As there; of the stamp a hash of what folds of that version hold"),
        *CARRIED.columns[4:],
    ),
    keys=("run_id", "kind", "cluster_id", "broker_id", "name", "row"),
)

EXPIRIES = TableSpec(
    layer="state",
    name="expiries",
    comment="Ledger: one row per cluster and time that old days were dropped.",
    columns=(
        required("expired_time", TIMESTAMP, "When"),
        required("closed_time", TIMESTAMP, "Gold of before stays as it is: what made it may be gone"),
        column("bronze_time", TIMESTAMP, "Lines of files that end before are gone; null: all are kept"),
        column("silver_time", TIMESTAMP, "Requests, fetches and the like of before are gone; null: all are kept"),
        column("gold_time", TIMESTAMP, "Rows of gold of before are gone; null: all are kept"),
        required("known_time", TIMESTAMP, "Findings of before, as they were then, stay"),
        required(
            "run_id",
            STRING,
            "Run whose state.anchors a replay begins with from now on; empty where none of the cluster was replayed",
        ),
        column("cluster_id", STRING, "Cluster; null: all of the lake, before each had its own days"),
    ),
    keys=("expired_time", "cluster_id"),
)

REPLAYS = TableSpec(
    layer="state",
    name="replays",
    comment="Ledger: one row per run and broker that had anything to replay: from when on, why, and up to when it is "
    "final. An audit that is made again, as after an upgrade, has the same run_id.",
    columns=(
        required("run_id", STRING, "gold.runs.run_id"),
        required("replayed_time", TIMESTAMP, "When the replay ended"),
        required("cluster_id", STRING, "Cluster"),
        required("broker_id", INT, "Broker"),
        column("from_time", TIMESTAMP, "Its log was replayed from here on; null: from the beginning"),
        column("until_time", TIMESTAMP, "The log reached up to here"),
        column("sealed_time", TIMESTAMP, "What lies before is final unless a file comes late; null: nothing is"),
        required(
            "reason",
            STRING,
            "first: nothing was replayed before; new: its log went on; late: lines came that belong before what was "
            "final, or a connection went on that had been silent since; configuration: what lines told of versions or "
            "settings changed for the past; fingerprint: rules, grammars or configuration of the audit changed; "
            "unchanged: another broker's log went on",
        ),
        column("late_time", TIMESTAMP, "Earliest instant of what came late"),
        required("file_ids", STRINGS, "Log files of this broker that were new, bronze.log_files.file_id"),
        column(
            "changes",
            STRINGS,
            "What of highwater changed since the run before: replay, grammar (lines were parsed again), settings of "
            "the replay, tables (an upgrade made some anew), rules (they alone were asked again); null: nothing",
        ),
    ),
    keys=("run_id", "cluster_id", "broker_id", "replayed_time"),
    checks={"reason_known": "reason IN ('first', 'new', 'late', 'configuration', 'fingerprint', 'unchanged')"},
)

UPGRADES = TableSpec(
    layer="state",
    name="upgrades",
    comment="Ledger: one row per table that a newer version of highwater found otherwise than it declares it.",
    columns=(
        required("upgraded_time", TIMESTAMP, "When"),
        required("code_version", STRING, "Version of highwater that came"),
        required("table_name", STRING, "Full name of the table"),
        required("change", STRING, "What was done to it, and why"),
    ),
    keys=("upgraded_time", "table_name"),
)

INVENTORY = TableSpec(
    layer="state",
    name="inventory",
    comment="One row per log that an ingest has read: what its file was then. A file that is still so is not opened.",
    columns=(
        required("path", STRING, "File: a log, or a bundle of logs"),
        required("name", STRING, "The log: bundle!/member in a bundle, else the path"),
        required("size_bytes", LONG, "Size of the file as stored, in bytes"),
        required("modified_time", TIMESTAMP, "When the file was last changed, by its file system or store"),
        required("file_id", STRING, "Content of the log, bronze.log_files.file_id"),
        required("looked_time", TIMESTAMP, "When size and time were asked for, by the clock of the ingest"),
        required(
            "patterns", STRING, "What chose a bundle's members: ingest.include, ingest.exclude; empty of other files"
        ),
    ),
    keys=("name",),
)

DIGESTS = TableSpec(
    layer="state",
    name="digests",
    comment="What stages take of a file of a table, such as the first fetch of each leader epoch: read instead of it.",
    columns=(
        required("reading", STRING, "Who takes what, with a hash of the columns and the condition"),
        required("code", STRING, "Components, with their numbers, that took it"),
        required("file", STRING, "Name of the file"),
        required("part", INT, "Part of a large file, from 0 on"),
        required("rows", BINARY, "The rows, as an Arrow IPC stream"),
    ),
    keys=("reading", "code", "file", "part"),
)

TABLES = (CARRIED, AUDITED, ANCHORS, EXPIRIES, REPLAYS, UPGRADES, INVENTORY, DIGESTS)
