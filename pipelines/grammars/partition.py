"""Grammar of ``kafka.cluster.Partition``: end offsets of followers, high watermark, how far a produce has come."""

from __future__ import annotations

import re
from functools import partial

from pipelines.grammars.grammar import Context, Template
from pipelines.grammars.printed import items
from pipelines.grammars.record import Fact, Record
from pipelines.grammars.typed import TP, node, typed
from pipelines.grammars.values import OFFSET, PARTITION, i32, i64, offset_of, optional_i64

#: ``replica 1: (offset=5 segment=[0:12])`` where an end offset is printed whole, ``broker 1: 5`` where it is a number.
_REPLICA_OFFSET = re.compile(rf"(?:replica|broker) (\d+): (?:{OFFSET}|(-?\d+))", re.ASCII)

#: Up to 1.1, without the replicas' ids: of no use.
_BARE_OFFSETS = re.compile(rf"{OFFSET}(?:,{OFFSET})*", re.ASCII)


def _replicas(text: str) -> list[dict[str, int]]:
    """``replica 2: (offset=-1 ...), broker 1: 5``: replicas with their log end offsets, -1 where unknown."""
    if _BARE_OFFSETS.fullmatch(text):
        return []
    replicas = []
    for item in items(text):
        match = _REPLICA_OFFSET.fullmatch(item)
        if match is None:
            raise ValueError(f"no replica with its offset: {item[:80]}")
        replicas.append({"replica_id": i32(match[1]), "log_end_offset": i64(match[2] or match[3])})
    return replicas


def _skipped(match: re.Match[str], context: Context, record: Record) -> tuple[Fact, ...]:
    """The "new hw" of the line is the minimum that was not good enough, no high watermark of anything: left out.

    Up to 2.3 the line also shows the old high watermark, which is the one that stays.
    """
    old, listed = match.groups()
    replicas = _replicas(listed)
    local = next((r["log_end_offset"] for r in replicas if r["replica_id"] == context.node), None)
    topic, partition = context.owner()
    row = {"topic": topic, "partition": partition, "source": "skipped", "high_watermark": optional_i64(old)}
    return (Fact("high_watermarks", {**row, "log_end_offset": local, "replica_end_offsets": replicas}),)


_progress = partial(typed, "delayed_operation_checks", operation="produce", step="progress")
_partition = partial(Template, loggers=("Partition",))
_replica = partial(Template, loggers=("Replica",))

TEMPLATES = (
    _partition(
        "partition.follower_recorded",
        r"Recorded replica (?P<replica_id>-?\d+) log end offset \(LEO\) position (?P<fetch_offset>-?\d+)(?: and log "
        rf"start offset (?P<log_start_offset>-?\d+))?(?: for partition {PARTITION})?\.",
        "Partition.updateFollowerFetchState (updateReplicaLogReadResult up to 2.1); log start offset since 2.4",
        typed("replica_fetches", source="recorded"),
    ),
    _partition(
        "partition.high_watermark_updated",
        rf"High watermark (?:for partition {PARTITION} )?updated (?:from {offset_of('previous_high_watermark')} )?to "
        rf"{offset_of('high_watermark')}",
        "Partition.maybeIncrementLeaderHW; 'from' since 2.4",
        typed("high_watermarks", source="updated"),
    ),
    _partition(
        "partition.high_watermark_skipped",
        rf"Skipping update high watermark since new hw {OFFSET.replace('(-?', '(?:-?')} is not larger than old "
        rf"(?:value|hw {OFFSET})\. ?All (?:current )?LEOs are (.*)",
        "Partition.maybeIncrementLeaderHW, 0.11 and later",
        _skipped,
    ),
    _partition(
        "partition.high_watermark_skipped",
        rf"Skipping update high watermark since Old hw {offset_of('high_watermark')} is larger than new hw .* for "
        r"partition .*\. All leo's are .*",
        "Partition.maybeIncrementLeaderHW up to 0.10",
        # bare offsets without replica ids: only the high watermark can be kept
        typed("high_watermarks", source="skipped"),
    ),
    _partition(
        "partition.high_watermark_under_min_isr",
        r"Not increasing HWM because partition is under min ISR\(ISR=.*",
        "Partition.maybeIncrementLeaderHW, 3.7 and later (KAFKA-15583)",
        typed("high_watermarks", source="under_min_isr"),
    ),
    _partition(
        "partition.produce_progress",
        r"Progress awaiting ISR acks for offset (?P<required_offset>-?\d+): acked: (\w*[\[(].*?[\])]), awaiting "
        r"(\w*[\[(].*[\])])",
        "Partition.checkEnoughReplicasReachOffset, 2.0 and later",
        _progress(acked=lambda match, _: _replicas(match[2]), awaiting=lambda match, _: _replicas(match[3])),
    ),
    _partition(
        "partition.replica_received",
        rf"Replica (-?\d+) (?:of {PARTITION} )?received offset (?P<required_offset>-?\d+)",
        "Partition.checkEnoughReplicasReachOffset up to 1.1",
        _progress(acked=lambda match, _: [{"replica_id": i32(match[1]), "log_end_offset": None}]),
    ),
    _partition(
        "partition.log_loaded",
        rf"Log loaded for partition {TP} with initial high watermark (?P<high_watermark>-?\d+)",
        "Partition.createLog, 2.4 and later",
        typed("high_watermarks", source="loaded"),
    ),
    _partition(
        "partition.leader_start",
        rf"{TP} starts at (?:leader epoch|Leader Epoch) (?P<leader_epoch>-?\d+) from offset "
        r"(?P<start_offset>-?\d+)(?: with high watermark (?P<high_watermark>-?\d+))?\. Previous (?:leader epoch "
        r"was|Leader Epoch was:) (?P<previous_leader_epoch>-?\d+)\.?",
        "Partition.makeLeader, 0.11 to 2.5; the state change log has it later",
        typed("leader_and_isr", role="leader_start", leader=node),
    ),
    _replica(
        "partition.replica_high_watermark_set",
        rf"Setting high watermark for replica -?\d+ partition {TP} (?:on broker -?\d+ )?to "
        rf"\[{offset_of('high_watermark')}\]",
        "Replica.highWatermark_= up to 2.3",
        typed("high_watermarks", source="set"),
    ),
)
