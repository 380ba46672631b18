"""The way of the data, step by step: which tables a step reads, by which key it folds their rows, who does it, and what
it gives. Read this first.

A step reads tables of the lake (``silver.requests``) and files that an earlier step of the same run has left
(``connections.fetches``); there is no other way from one step to another. ``highwater explain --flow`` prints the
steps, and `tests/unit/test_flow.py` holds them against the code: a step that reads, writes or folds otherwise than is
said here fails it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, zip_longest
from textwrap import wrap

from highwater.schemas.catalog import BY_FULL_NAME
from highwater.schemas.silver import TABLES as PARSED
from highwater.schemas.table import TableSpec


@dataclass(frozen=True)
class FlowStep:
    """One step of a run."""

    verb: str  #: of ``highwater``, which does it; ``audit`` does all of ingest to report
    name: str  #: also the layer of the files that it leaves for later steps
    says: str  #: what it does
    stage: str  #: module and function that give the sources to the worker, below ``pipelines``
    worker: str  #: module and function or class that make rows of rows, below ``pipelines``; pure
    reads: str = ""  #: full names of tables and files, with spaces between
    by: str = ""  #: columns of the key by which a fold brings rows together; empty where none does
    gives: str = ""  #: full names of tables and files, with spaces between

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """Return tables and files that it reads."""
        return tuple(self.reads.split())

    @cached_property
    def key(self) -> tuple[str, ...]:
        """Return columns of the key of its fold."""
        return tuple(self.by.split())

    @cached_property
    def results(self) -> tuple[str, ...]:
        """Return tables and files that it writes."""
        return tuple(self.gives.split())

    @cached_property
    def tables(self) -> tuple[TableSpec, ...]:
        """Return tables that it writes."""
        return tuple(BY_FULL_NAME[name] for name in self.results if name in BY_FULL_NAME)

    @cached_property
    def files(self) -> tuple[str, ...]:
        """Return names of the files that it writes, without its own."""
        return tuple(name.partition(".")[2] for name in self.results if name not in BY_FULL_NAME)


_SILVER = " ".join(spec.full_name for spec in PARSED)
_DATA_DIR = "silver.checkpoints silver.log_batches silver.metadata_records"
_BROKER = "cluster_id broker_id"
_CONNECTION = "cluster_id broker_id connection"
_PARTITION = "cluster_id topic partition"
_REQUESTS = "silver.produce_requests silver.fetch_requests silver.requests"

# ------------------------------------------------------------------ files become records, records become facts

LOGS = FlowStep(
    *("ingest", "logs", "Log files become records, each with its file and byte offset; a content is stored once."),
    stage="bronze.ingest.ingest_batches",
    worker="bronze.rows.rows",
    gives="bronze.log_files bronze.log_lines bronze.unread_files bronze.process_remarks state.inventory",
)
DATA = FlowStep(
    *("ingest", "data", "Checkpoints, segments and the metadata log of data directories become rows."),
    stage="bronze.data_files.ingest_data",
    worker="bronze.data_dir_reader.FileReader",
    reads="bronze.log_files",
    gives=f"bronze.data_files {_DATA_DIR}",
)
FACTS = FlowStep(
    *("parse", "facts", "A grammar reads a record wholly, into the table of its kind, or says why it cannot."),
    stage="silver.parse.parse",
    worker="grammars.facts.parse_lines",
    reads="bronze.log_files bronze.log_lines",
    gives=_SILVER,
)
QUALITY = FlowStep(
    *("quality", "quality", "Each new batch is asked what its tables promise; what breaks it is put in quarantine."),
    stage="quality.stage.check",
    worker="quality.suites.chosen",
    reads=f"bronze.log_files bronze.log_lines bronze.data_files {_SILVER} {_DATA_DIR}",
    gives="quality.results quality.quarantined_files",
)

# --------------------------------------------------------------------- what the replay begins with

CONFIGS = FlowStep(
    *("replay", "configs", "Settings of brokers and topics, line by line."),
    stage="cluster.stage.config_fold",
    worker="cluster.configs.lines",
    reads="silver.broker_configs",
    by="file_id byte_offset scope entity",
    gives="configs.lines",
)
PREMISES = FlowStep(
    *("replay", "premises", "What the whole audit rests on: versions, settings, lives of brokers, names of topics."),
    stage="cluster.stage.collect_premises",
    worker="cluster.premises.premises_of",
    reads="configs.lines bronze.log_files bronze.log_lines silver.broker_lifecycle silver.controller_events "
    "silver.metadata_records silver.topics silver.fetch_requests silver.requests silver.produce_requests "
    "silver.replica_fetches silver.fetcher_events silver.future_logs silver.leader_and_isr silver.line_counts",
    by="kind",
)
SILENCES = FlowStep(
    *("replay", "silences", "Which connection was silent before new files went on with it."),
    stage="replay.carried.silence_starts",
    worker="replay.silences.SilenceWorker",
    reads="silver.fetch_requests",
    by=_CONNECTION,
    gives="silences.silences",
)
WINDOW = FlowStep(
    *("replay", "window", "From which seal each broker's replay goes on, and up to where it will be final."),
    stage="replay.carried.plan",
    worker="replay.carried.starts",
    reads=f"silences.silences state.runs state.folds state.expiries {_REQUESTS}",
)

# ------------------------------------------------------------- the replay: what happened, partition by partition

CONNECTIONS = FlowStep(
    *("replay", "connections", "Fetches of a connection in their order: what a follower had when it asked."),
    stage="replay.timeline.connection_fold",
    worker="replay.connections.ConnectionWorker",
    reads="bronze.log_lines silver.fetch_requests silver.replica_fetches state.folds",
    by=_CONNECTION,
    gives="connections.fetches connections.watches connections.chain_ends connections.answers connections.gaps "
    "connections.resumed connections.last_fetches connections.silences connections.logged",
)
LEADERSHIPS = FlowStep(
    *("replay", "leaderships", "What a broker's own lines say of the partitions that it leads, and of their ISRs."),
    stage="replay.timeline.leadership_fold",
    worker="replay.broker_lines.BrokerWorker",
    reads="silver.leader_and_isr silver.isr_changes silver.fetcher_events silver.broker_lifecycle",
    by=_BROKER,
    gives="leaderships.events",
)
APART = FlowStep(
    *("replay", "apart", "How far the clocks of followers that serve consumers are from those of their leaders."),
    stage="replay.timeline.clocks_apart",
    worker="replay.follower_clocks.apart_by_partition",
    reads="connections.answers silver.fetch_requests",
    by=f"{_PARTITION} broker_id",
    gives="apart.apart",
)
PARTITIONS = FlowStep(
    *(
        "replay",
        "partitions",
        "The kernel: appends, high watermarks and ISRs of a partition on the broker that leads it.",
    ),
    stage="replay.stage.replay_partitions",
    worker="replay.partition_worker.PartitionWorker",
    reads="leaderships.events connections.fetches connections.watches connections.answers silver.isr_changes "
    "silver.segment_rolls silver.tier_events silver.produce_requests silver.requests silver.delayed_operation_checks "
    "silver.appends state.folds",
    by=f"{_PARTITION} broker_id",
    gives="gold.isr_timeline partitions.outcomes partitions.wakes partitions.session_wakes partitions.folds "
    "partitions.open",
)
PRODUCES = FlowStep(
    *("replay", "produces", "All partitions of a request together: when its produce was satisfied, and answered."),
    stage="replay.stage.produce_fold",
    worker="replay.produce_worker.ProduceWorker",
    reads="partitions.outcomes silver.produce_requests silver.requests state.folds",
    by=f"{_BROKER} operation_id",
    gives="gold.delayed_operations produces.undecided_operations",
)
FETCHES = FlowStep(
    *("replay", "fetches", "Fetches of a session, and what woke each: which waited, for what, and until when."),
    stage="replay.stage.session_fold",
    worker="replay.session_worker.SessionWorker",
    reads="partitions.session_wakes connections.watches silver.fetch_requests state.folds",
    by=_CONNECTION,
    gives="gold.delayed_operations fetches.undecided_operations fetches.folds",
)
LATE = FlowStep(
    *("replay", "late", "Operations that are late by themselves, held against what their broker did meanwhile."),
    stage="replay.late_stage.settled",
    worker="replay.late.settler",
    reads=f"produces.undecided_operations fetches.undecided_operations {_REQUESTS} silver.leader_and_isr "
    "silver.isr_changes",
    by=_BROKER,
    gives="gold.delayed_operations",
)
SHARES = FlowStep(
    *("replay", "shares", "Requests of members of share groups (KIP-932)."),
    stage="replay.share_stage.share_fold",
    worker="replay.share_worker.ShareWorker",
    reads="partitions.wakes silver.requests",
    by=_BROKER,
    gives="gold.share_operations",
)
FOLLOWERS = FlowStep(
    *("replay", "followers", "Did each follower truncate where its version says, and what did its fetcher do."),
    stage="replay.followers_stage.follower_fold",
    worker="replay.follower_worker.follower_worker",
    reads="silver.leader_and_isr silver.truncations silver.high_watermarks silver.fetcher_events "
    "silver.replica_fetches silver.requests silver.appends",
    by=_PARTITION,
    gives="gold.replica_truncations gold.fetcher_timeline",
)
PHASES = FlowStep(
    *("replay", "phases", "Where the time of each request went."),
    stage="timing.latency.stage.request_phases",
    worker="timing.latency.stage.phases",
    reads=_REQUESTS,
    gives="gold.request_phases",
)
BLAME = FlowStep(
    *("replay", "blame", "Which replica operations waited for, by interval."),
    stage="timing.latency.stage.replica_blame",
    worker="timing.latency.blame.BlameWorker",
    reads="gold.delayed_operations",
    by="cluster_id kind interval_us",
    gives="gold.replica_blame",
)
FOLDS = FlowStep(
    *("replay", "folds", "What the next run goes on from."),
    stage="replay.carried.write_folds",
    worker="replay.carried_rows.carried_rows",
    reads="partitions.folds partitions.outcomes partitions.wakes fetches.folds connections.last_fetches "
    "connections.watches state.folds",
    gives="state.folds",
)

# ------------------------------------------------------------- rules, and what is told of all of it

CONTROLLERS = FlowStep(
    *("replay", "controllers", "Legal transitions, fail-overs, partitions without leader."),
    stage="controllers.stage.replay_of_controllers",
    worker="controllers.worker.replayer",
    reads="silver.leader_and_isr silver.partition_states silver.replica_states silver.isr_changes "
    "silver.controller_events silver.broker_lifecycle silver.metadata_records silver.replica_fetches "
    "gold.delayed_operations",
    by="cluster_id key_topic key_partition",
    gives="gold.controller_transitions gold.partition_timeline gold.failovers gold.availability "
    "gold.isr_absences rules.cases rules.results",
)
RULES = FlowStep(
    *("replay", "rules", "Every rule over the facts of a partition, in their order."),
    stage="rules.stage.find_cases",
    worker="rules.worker.auditor",
    reads="silver.leader_and_isr silver.isr_changes silver.partition_states silver.controller_events "
    "silver.truncations gold.replica_truncations gold.isr_timeline silver.checkpoints silver.metadata_records "
    "silver.replica_fetches silver.high_watermarks gold.delayed_operations silver.produce_requests silver.log_batches "
    "silver.appends silver.fetch_requests silver.requests silver.tier_events bronze.data_files state.audited "
    "state.runs",
    by=_PARTITION,
    gives="state.audited rules.cases rules.results rules.left_out rules.named rules.again",
)
HOLES = FlowStep(
    *("replay", "holes", "What is missing from the logs, and how many records each template read."),
    stage="rules.holes_stage.write_holes",
    worker="rules.holes.holes_of_requests",
    reads="bronze.log_files bronze.log_lines bronze.unread_files silver.line_counts silver.unparsed_lines "
    "silver.leader_and_isr silver.fetcher_events silver.produce_requests silver.requests silver.fetch_requests",
    gives="gold.holes gold.coverage",
)
FINDINGS = FlowStep(
    *("replay", "findings", "Cases of one cause become a finding with its lines; each rule gets its result."),
    stage="gold.audit_stage.audit",
    worker="rules.findings.findings_of",
    reads="rules.cases bronze.log_files bronze.log_lines bronze.data_files "
    f"silver.produce_requests silver.requests {_DATA_DIR} gold.violations gold.evidence state.expiries",
    gives="gold.violations gold.evidence gold.rule_results",
)
CLOCKS = FlowStep(
    *("replay", "clocks", "Bounds of how far the clocks of two brokers are apart."),
    stage="timing.clocks.stage.write_clock_bounds",
    worker="timing.clocks.links.links",
    reads="silver.leader_and_isr silver.replica_fetches silver.controller_events",
    gives="gold.clock_bounds",
)
INCIDENTS = FlowStep(
    *("replay", "incidents", "What happened, in words: findings, fail-overs, waits and deaths that belong together."),
    stage="incidents.stage.write_incidents",
    worker="incidents.story.incidents_of",
    reads="bronze.log_files bronze.log_lines bronze.process_remarks silver.broker_lifecycle silver.controller_events "
    "silver.broker_configs silver.produce_requests silver.topics gold.delayed_operations gold.request_phases "
    "gold.partition_timeline gold.isr_absences gold.share_operations gold.availability gold.failovers gold.violations "
    "gold.evidence gold.clock_bounds",
    gives="gold.broker_timeline gold.controller_timeline gold.incidents gold.incident_lines",
)
LEDGER = FlowStep(
    *("replay", "ledger", "The last commit of a run, which makes it count: seals, and what it went on from."),
    stage="gold.ledger.note_run",
    worker="base.fingerprint.components_changed",
    reads="state.runs",
    gives="state.runs",
)

#: In the order in which a run takes them; some of them run beside each other.
STEPS = (
    *(LOGS, DATA, FACTS, QUALITY),
    *(CONFIGS, PREMISES, SILENCES, WINDOW),
    *(CONNECTIONS, LEADERSHIPS, APART, PARTITIONS, PRODUCES, FETCHES, LATE, SHARES),
    *(FOLLOWERS, PHASES, BLAME, FOLDS),
    *(CONTROLLERS, RULES, HOLES, FINDINGS, CLOCKS, INCIDENTS, LEDGER),
)
#: Tables that no step gives, and who keeps each: they are about the lake, and not about what is in the logs.
OF_THE_LAKE = {
    "gold.runs": "jobs/run_ledger.py",
    "state.digests": "pipelines/lake/digests.py",
    "state.expiries": "pipelines/upkeep/expiry.py",
    "state.upgrades": "pipelines/upkeep/upgrade.py",
}


_HEADS = ("step", "takes of", "by", "tables")


def described() -> str:
    """Return the steps as text: what each reads, its key, its worker, what it writes."""
    lines = []
    for verb, of_verb in groupby(STEPS, key=lambda step: step.verb):
        lines += [f"highwater {verb}", ""]
        for step in of_verb:
            lines.append(f"  {step.name}: {step.says}")
            parts = {
                "reads": ", ".join(_short(step.sources)) or "files",
                "by": ", ".join(step.key),
                "stage": _place(step.stage),
                "worker": _place(step.worker),
                "gives": ", ".join(_short(step.results)) or "what the steps behind it are told",
            }
            lines += [f"    {label:8}{text}" for label, text in parts.items() if text]
            lines.append("")
    return "\n".join(lines).rstrip()


def figure() -> str:
    """Return the steps as a figure: the inputs of each, the key of its fold, and its tables."""
    widths = (13, 42, 25, 48)
    lines = ["".join(f"{head:{width}}" for head, width in zip(_HEADS, widths, strict=True)).rstrip()]
    for step in STEPS:
        takes = [other.name for other in STEPS if other is not step and set(other.results) & set(step.sources)]
        key = [name.removesuffix("_id") for name in step.key if name != "cluster_id"]
        tables = [spec.name for spec in step.tables] if step is not FACTS else [f"silver, {len(PARSED)} tables"]
        cells = (step.name, ", ".join(takes) if step.sources else "files", ", ".join(key), ", ".join(tables))
        wrapped = [wrap(cell, width - 1) for cell, width in zip(cells, widths, strict=True)]
        for parts in zip_longest(*wrapped, fillvalue=""):
            lines.append("".join(f"{part:{width}}" for part, width in zip(parts, widths, strict=True)).rstrip())
    return "\n".join(lines)


def _short(names: tuple[str, ...]) -> list[str]:
    """Return names, with all tables of silver that parsing writes as one word."""
    others = [name for name in names if name not in _SILVER.split()]
    whole = set(_SILVER.split()) <= set(names)
    return [*others, f"silver.* ({len(PARSED)} tables)"] if whole else list(names)


def _place(dotted: str) -> str:
    module, _, name = dotted.rpartition(".")
    return f"pipelines/{module.replace('.', '/')}.py {name}"
