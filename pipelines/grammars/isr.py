"""Facts of the leader's ISR lines (``kafka.cluster.Partition``): proposed, pending, committed, refused."""

from __future__ import annotations

import re

from highwater.pipelines.grammars.grammar import LogIdent
from highwater.pipelines.grammars.printed import COMMITTED, PENDING, STATES, parse_fields, parse_isr
from highwater.pipelines.grammars.record import LineFact, LogRecord
from highwater.pipelines.grammars.typed import logged
from highwater.pipelines.grammars.values import OFFSET, i32, ints, match_items, match_whole, optional_i64

_DETAIL_CHARS_MAX = 500

_LAGGING = r"\(brokerId: (-?\d+), endOffset: (-?\d+|unknown)(?:, lastCaughtUpTimeMs: (-?\d+|unknown))?\)"
_OUT_OF_SYNC = re.compile(_LAGGING, re.ASCII)
_ALL_OUT_OF_SYNC = re.compile(rf"{_LAGGING}(?: {_LAGGING})*\.", re.ASCII)

_REPLICA = (
    r"ReplicaId: (?P<old>\d+); Topic: [\w.-]+; Partition: \d+; isLocal: (?:true|false)(?:; lastCaughtUpTimeMs: "
    rf"-?\d+)?(?:; Highwatermark: {OFFSET}(?:; LastStableOffset: {OFFSET})?)?|Replica\(replicaId=(?P<new>\d+), "
    rf"topic=[\w.-]+, partition=\d+, isLocal=(?:true|false), lastCaughtUpTimeMs=-?\d+(?:, highWatermark={OFFSET}, "
    rf"lastStableOffset={OFFSET})?\)"
)
#: What an ISR shows of each replica up to 2.3, the next one after a comma.
_NEXT_REPLICA = re.compile(rf"(?:{_REPLICA})(?:,(?=Replica)|$)", re.ASCII)


def _parse_replica_ids(text: str) -> list[int]:
    replicas = match_items(_NEXT_REPLICA, text, "replica")
    return ints(",".join(replica["old"] or replica["new"] for replica in replicas))


def _make_isr_change(context: LogIdent, change: str, **columns: object) -> tuple[LineFact, ...]:
    topic, partition = context.owner()
    return (LineFact("isr_changes", {"topic": topic, "partition": partition, "change": change, **columns}),)


def shrink(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read an ISR shrink, with the leader's offsets and the removed replicas."""
    before, after, high_watermark, end_offset, listed = match.groups()
    if listed is not None:
        match_whole(_ALL_OUT_OF_SYNC, listed, "list of replicas")
    out_of_sync = [
        {
            "replica_id": i32(replica),
            "end_offset": optional_i64(offset),
            "last_caught_up_time_ms": optional_i64(caught_up or None),
        }
        for replica, offset, caught_up in _OUT_OF_SYNC.findall(listed or "")
    ]
    return _make_isr_change(
        context,
        "shrink",
        isr=ints(after),
        previous_isr=ints(before),
        high_watermark=optional_i64(high_watermark),
        leader_end_offset=optional_i64(end_offset),
        out_of_sync=out_of_sync if listed is not None else None,
    )


def committed_old(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read a committed ISR that old versions print replica by replica."""
    return _make_isr_change(context, "committed", isr=_parse_replica_ids(match[1]), partition_epoch=i32(match[2]))


def _parse_proposal(text: str) -> tuple[str, dict[str, object]]:
    """Return the kind and the columns of ``PendingExpandIsr(...)`` or ``PendingShrinkIsr(...)``.

    Up to 3.2 it prints the previous ISR as ``isr=``; since 3.3 the last committed state. Since 3.2 it contains the
    state sent to the controller, which older lines print separately.
    """
    state = parse_fields(text, PENDING)
    kind = "expand" if text.startswith("PendingExpand") else "shrink"
    committed = state.get("lastCommittedState")
    previous = ints(state["isr"] if committed is None else parse_fields(committed, COMMITTED)["isr"])
    columns: dict[str, object] = {"previous_isr": previous}
    sent = state.get("sentLeaderAndIsr")
    if sent is not None:
        columns.update(_parse_sent_state(sent))
    elif kind == "expand":
        columns["isr"] = ints(",".join(map(str, (*previous, i32(state["newInSyncReplicaId"])))))
    else:
        leaving = ints(state["outOfSyncReplicaIds"])
        if not leaving or not set(leaving) <= set(previous):
            raise ValueError(f"nothing leaves the ISR: {text[:80]}")
        columns["isr"] = [replica for replica in previous if replica not in leaving]
    return kind, columns


def _parse_sent_state(text: str) -> dict[str, object]:
    """Return the ISR and epoch of a printed ``LeaderAndIsr``."""
    state = parse_fields(text, STATES)
    return {"isr": parse_isr(state), "leader_epoch": i32(state["leaderEpoch"])}


def pending(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read an ISR that the leader proposes to the controller."""
    kind, columns = _parse_proposal(match[1])
    return _make_isr_change(context, f"pending_{kind}", **columns, detail=match[1][:_DETAIL_CHARS_MAX])


def pending_beside(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read an ISR proposal of 2.7 to 3.0, which prints the state to be sent before the pending one."""
    kind, columns = _parse_proposal(match[2])
    columns.update(_parse_sent_state(match[1]))
    return _make_isr_change(context, f"pending_{kind}", **columns, detail=match[2][:_DETAIL_CHARS_MAX])


def refused(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read an ISR proposal that the controller refused."""
    _, columns = _parse_proposal(match[1])
    return _make_isr_change(context, "refused", **columns, detail=match[2][:_DETAIL_CHARS_MAX])


def refused_state(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read a refused ``LeaderAndIsr`` printed without the pending state."""
    return _make_isr_change(context, "refused", **_parse_sent_state(match[1]), detail=logged(match, context))


def replaced(match: re.Match[str], context: LogIdent, record: LogRecord) -> tuple[LineFact, ...]:
    """Read an ISR commit by which the controller removed this replica from the partition."""
    _, columns = _parse_proposal(match[1])
    return _make_isr_change(context, "committed", **columns, detail=match[2][:_DETAIL_CHARS_MAX])
