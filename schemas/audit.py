"""Gold tables of the correctness audit: what was broken, how it is proven, and what became of every rule."""

from __future__ import annotations

from schemas import columns as c
from schemas.table import INT, INTS, LONG, STRING, STRINGS, TIMESTAMP, TableSpec, column, required

VIOLATIONS = TableSpec(
    layer="gold",
    name="violations",
    comment="One row per finding of a rule: a broken guarantee, something legal but surprising, or a case left open.",
    columns=(
        c.CLUSTER,
        required("finding_id", STRING, "MD5 of rule, place, offsets and time; evidence refers to it"),
        required("rule_id", STRING, "Rule that found it"),
        required(
            "severity",
            STRING,
            "violation: a guarantee is broken; observation: legal, but good to know; open: the logs do not decide it",
        ),
        column("implied_by", STRING, "finding_id of the finding that this one follows from; null for one of its own"),
        column("topic", STRING, "Topic"),
        column("partition", INT, "Partition"),
        column("leader_epoch", INT, "Leader epoch that it is about"),
        column("offset_start", LONG, "First offset that it is about"),
        column("offset_end", LONG, "Offset after the last one"),
        column("time", TIMESTAMP, "When, on the clock of the first line that shows it"),
        required("brokers", INTS, "Brokers that it is about, ascending"),
        column("cause", STRING, "Short name of the cause, where the rule tells several apart"),
        column("known_bug", STRING, "JIRA or KIP of a bug of the running version that has this signature"),
        column("records", LONG, "Requests or records that it is about, where they are counted"),
        required("message", STRING, "What happened"),
    ),
    feeds_changes=True,
    keys=("finding_id",),
    bounded_by=("cluster_id", "rule_id", "topic", "partition"),
    checks={"severity_known": "severity IN ('violation', 'observation', 'open')"},
)

EVIDENCE = TableSpec(
    layer="gold",
    name="evidence",
    comment="The raw lines that show a finding, in time order; the one gold table that names files and places in them.",
    columns=(
        c.CLUSTER,
        required("finding_id", STRING, "gold.violations.finding_id"),
        required("position", INT, "Place among the lines of the finding, from 0"),
        *c.SHOWN,
        column("file_id", STRING, "bronze.log_files.file_id, or bronze.data_files.file_id"),
        required("line_no", LONG, "Number of the line, from 1; 0 in a file that has no lines"),
        c.BYTE_OFFSET,
        required("text", STRING, "The line's message"),
    ),
    feeds_changes=True,
    keys=("finding_id", "position"),
)

RULE_RESULTS = TableSpec(
    layer="gold",
    name="rule_results",
    comment="One row per cluster and rule: its verdict, and how much it had to go by.",
    columns=(
        c.CLUSTER,
        required("rule_id", STRING, "Rule"),
        required("verdict", STRING, "violated, inconclusive, clean"),
        required("checked", LONG, "Facts that it judged"),
        required("cases", LONG, "Violations that it found, those under other findings included"),
        required("observations", LONG, "Legal but surprising things that it found"),
        required("open_cases", LONG, "Cases that these logs do not decide"),
        required("left_out", LONG, "Of all these, those beyond the first 1,000, which are counted and not shown"),
        column(
            "reason", STRING, "Why it is inconclusive; null if only the evidence that it needs is not in these logs"
        ),
        column("error", STRING, "What it raised, if anything; part of the reason"),
        required(
            "doubts", STRINGS, "What the audit takes for granted and does not hold, of any rule; part of the reason"
        ),
    ),
    feeds_changes=True,
    keys=("cluster_id", "rule_id"),
    checks={"verdict_known": "verdict IN ('violated', 'inconclusive', 'clean')"},
)

TABLES = (VIOLATIONS, EVIDENCE, RULE_RESULTS)
