"""What replicas did and what leaders saw of them."""

from __future__ import annotations

from schemas import columns as c
from schemas.silver.source import silver_table
from schemas.table import BOOLEAN, INT, INTS, LONG, STRING, TIMESTAMP, column, required, structs

_END_OFFSETS = structs(required("replica_id", INT, "Replica"), column("log_end_offset", LONG, "Its log end offset"))

LEADER_AND_ISR = silver_table(
    "leader_and_isr",
    "A broker, or the controller, says who leads a partition: epoch starts of leaders and followers, ISR samples.",
    *(c.TOPIC, c.PARTITION),
    required(
        "role",
        STRING,
        "leader_start: this broker became leader of a new epoch; follower_start: it follows; leader_update: the leader "
        "took newer metadata within its epoch (Skipped the become-leader state change); request: state received in a "
        "LeaderAndIsr request; controller: the controller's own decision; metadata: UpdateMetadata cache; stopped: it "
        "no longer hosts the replica",
    ),
    column("topic_id", STRING, "Topic id, where the version has them"),
    column("leader", INT, "Leader's broker id; -1 for none"),
    c.LEADER_EPOCH,
    column("partition_epoch", INT, "Partition epoch (KRaft) or zkVersion (ZooKeeper)"),
    column("start_offset", LONG, "Log end offset at which the broker starts the epoch"),
    column("high_watermark", LONG, "High watermark that the line shows"),
    column("isr", INTS, "In-sync replicas"),
    column("replicas", INTS, "Assigned replicas"),
    column("adding_replicas", INTS, "Replicas being added by a reassignment"),
    column("removing_replicas", INTS, "Replicas being removed by a reassignment"),
    column("previous_leader", INT, "Previous leader, where the line names it (wrong in followers' lines since 3.6)"),
    column("previous_leader_epoch", INT, "Previous leader epoch, as logged"),
    column("controller_id", INT, "Controller that sent it"),
    column("controller_epoch", INT, "Its epoch"),
    column("is_new", BOOLEAN, "isNew of the partition state"),
    column("log_dir", STRING, "Directory of the log that was deleted (role stopped): see silver.future_logs"),
    words={"role": "leader_start follower_start leader_update request controller metadata stopped"},
)

ISR_CHANGES = silver_table(
    "isr_changes",
    "What a leader did to its ISR.",
    *(c.TOPIC, c.PARTITION),
    required(
        "change",
        STRING,
        "shrink / expand: proposed (P1, P2 lines); pending_shrink / pending_expand: sent to the controller (DEBUG "
        "lines); committed: ISR updated; refused: the update failed and was ignored or will be retried",
    ),
    column("isr", INTS, "ISR after the change (proposed or committed)"),
    column("previous_isr", INTS, "ISR before, where the line says it"),
    column("leader_epoch", INT, "Leader epoch, where the line says it"),
    column("partition_epoch", INT, "Partition epoch or zkVersion after the change"),
    column("high_watermark", LONG, "Leader's high watermark that the line shows"),
    column("leader_end_offset", LONG, "Leader's log end offset that the line shows"),
    column(
        "out_of_sync",
        structs(
            required("replica_id", INT, "Replica"),
            column("end_offset", LONG, "Its log end offset as the leader knows it"),
            column("last_caught_up_time_ms", LONG, "When it was last caught up, Unix ms (3.6 and later)"),
        ),
        "Replicas that the line calls out of sync",
    ),
    column("detail", STRING, "Reason or state, as logged"),
    words={"change": "shrink expand pending_shrink pending_expand committed refused"},
)

TOPICS = silver_table(
    "topics",
    "A topic id and the name that a line gives it.",
    c.TOPIC,
    required("topic_id", STRING, "Topic id"),
)

REPLICA_FETCHES = silver_table(
    "replica_fetches",
    "A follower's position as its leader saw it: a fetch request (T1) or a 'Recorded replica' line (T2).",
    required("topic", STRING, "Topic; 'id:<topic id>' where no line names it"),
    c.PARTITION,
    column("topic_id", STRING, "Topic id of the request (fetch version 13 and later)"),
    required("source", STRING, "request: FETCH in the request log; recorded: 'Recorded replica' line of the leader"),
    required("replica_id", INT, "Follower"),
    column("fetch_offset", LONG, "Offset asked for = follower's log end offset; null if the session did not repeat it"),
    column("leader_epoch", INT, "currentLeaderEpoch of the request"),
    column("last_fetched_epoch", INT, "lastFetchedEpoch of the request"),
    column("log_start_offset", LONG, "Follower's log start offset"),
    column("session_id", INT, "Fetch session of the response (0: none)"),
    column("session_epoch", INT, "Fetch session epoch of the request"),
    column("correlation_id", INT, "Correlation id of the request"),
    column("connection", STRING, "Connection of the request"),
    column("arrival_time", TIMESTAMP, "Request read from the socket (upper bound: line time - totalTimeMs)"),
    column("dequeued_time", TIMESTAMP, "arrival + requestQueueTimeMs"),
    column("handled_time", TIMESTAMP, "dequeued + localTimeMs: the leader has seen the offset by now"),
    column("completed_time", TIMESTAMP, "handled + remoteTimeMs: the response was ready"),
    column("sent_time", TIMESTAMP, "Response sent"),
    column("response_error_code", INT, "Error code; 0 where the response omits it, null without one"),
    column("response_high_watermark", LONG, "High watermark in the response"),
    column("response_last_stable_offset", LONG, "Last stable offset in the response; null where it has none"),
    column("response_bytes", LONG, "Records in the response, in bytes"),
    column("diverging_epoch", INT, "divergingEpoch.epoch of the response"),
    column("diverging_end_offset", LONG, "divergingEpoch.endOffset of the response"),
    is_traffic=True,
    words={"source": "request recorded"},
)

HIGH_WATERMARKS = silver_table(
    "high_watermarks",
    "A high watermark (or a log end offset) that a broker logged, as leader or as follower.",
    *(c.TOPIC, c.PARTITION),
    required(
        "source",
        STRING,
        "updated: leader moved it (T2); skipped: leader could not (T3); set: log layer (T3); follower: it took it "
        "from a fetch response (T3); loaded: initial value at log loading; non_monotonic: WARN, it went back; "
        "under_min_isr: not increased, too few in-sync replicas (T3)",
    ),
    column("high_watermark", LONG, "High watermark after the line"),
    column("previous_high_watermark", LONG, "Before, where the line says it"),
    column("log_end_offset", LONG, "Log end offset that the line shows"),
    column("leader_high_watermark", LONG, "Leader's high watermark in a follower's line"),
    column("replica_end_offsets", _END_OFFSETS, "Log end offsets of the replicas, where the line lists them"),
    column("log_dir", STRING, "Directory of the log, by the line (1.1 and later): see silver.future_logs"),
    is_traffic=True,
    words={"source": "updated skipped set follower loaded non_monotonic under_min_isr"},
)

APPENDS = silver_table(
    "appends",
    "Records appended to a log, as the broker's TRACE lines say (T3).",
    *(c.TOPIC, c.PARTITION),
    required("source", STRING, "log: the log layer; replica_manager: 'written to log'; follower: replica fetcher"),
    column("first_offset", LONG, "First offset"),
    column("last_offset", LONG, "Last offset"),
    column("size_bytes", LONG, "Size of the records"),
    column("log_dir", STRING, "Directory of the log, by the line (1.1 and later): see silver.future_logs"),
    is_traffic=True,
    words={"source": "log replica_manager follower"},
)

DELAYED_OPERATION_CHECKS = silver_table(
    "delayed_operation_checks",
    "What a broker logged of its delayed operations (T3): initial status, each check, awaiting sets, expiry.",
    *(c.TOPIC, c.PARTITION),
    required("operation", STRING, "produce or fetch"),
    required(
        "step",
        STRING,
        "initial: status on creation; check: tryComplete looked at it; progress: replicas that acked and that are "
        "awaited; expired: the timer fired; unblocked: a key unblocked operations; satisfied: a fetch was satisfied "
        "for the reason in detail",
    ),
    column("acks_pending", BOOLEAN, "acksPending"),
    column("error_code", INT, "Error held in the status"),
    column("start_offset", LONG, "startOffset: base offset of the append"),
    column("required_offset", LONG, "requiredOffset: last offset + 1"),
    column("acked", _END_OFFSETS, "Replicas that have the required offset"),
    column("awaiting", _END_OFFSETS, "Replicas that have not"),
    column("unblocked", INT, "Operations unblocked"),
    column("detail", STRING, "Reason, as logged"),
    is_traffic=True,
    words={"operation": "produce fetch", "step": "initial check progress expired unblocked satisfied"},
)

TRUNCATIONS = silver_table(
    "truncations",
    "A replica truncated its log, or said why it did not.",
    *(c.TOPIC, c.PARTITION),
    required(
        "source",
        STRING,
        "log: the log layer truncated; fetcher: the replica fetcher decided; no_effect: nothing "
        "to truncate; below_high_watermark: WARN; out_of_range: reset of the fetch offset; "
        "epoch_reply: what the leader said of an epoch",
    ),
    column("offset", LONG, "Offset truncated to, or reset to"),
    column("previous_end_offset", LONG, "Log end offset before, where the line says it"),
    column("high_watermark", LONG, "High watermark that the line shows"),
    column("reason", STRING, "high_watermark, leader_epoch, out_of_range, full, ... as far as the line says"),
    column("leader_epoch", INT, "Leader epoch that the line shows"),
    c.DETAIL,
    column("log_dir", STRING, "Directory of the log, by the line (1.1 and later): see silver.future_logs"),
    words={"source": "log fetcher no_effect below_high_watermark out_of_range epoch_reply"},
)

LEADER_EPOCHS = silver_table(
    "leader_epochs",
    "An entry of a replica's leader-epoch history that was written or removed.",
    *(c.TOPIC, c.PARTITION),
    required("action", STRING, "assigned or truncated"),
    column("leader_epoch", INT, "Epoch"),
    column("start_offset", LONG, "Its start offset"),
    c.DETAIL,
    words={"action": "assigned truncated"},
)

FETCHER_EVENTS = silver_table(
    "fetcher_events",
    "A partition joined, left or failed in a broker's replica fetcher.",
    *(c.TOPIC, c.PARTITION),
    required("action", STRING, "added, removed, failed, delayed, error, fenced"),
    column("leader", INT, "Broker fetched from"),
    column("fetcher_id", INT, "Fetcher thread"),
    c.LEADER_EPOCH,
    column("offset", LONG, "Initial or current fetch offset"),
    column("error", STRING, "Error, as logged"),
    words={"action": "added removed failed delayed error fenced"},
)

TIER_EVENTS = silver_table(
    "tier_events",
    "What a broker does with a remote tier (KIP-405), and from where on its own log, and the partition's, begin.",
    *(c.TOPIC, c.PARTITION),
    required(
        "event",
        STRING,
        "local_start: the replica's own log begins at offset, what lies before is read from the tier; log_start: the "
        "partition begins at offset; copied: the segment that begins at offset is in the tier; expired: Kafka is about "
        "to delete the segment from the tier, or did; read_failed: a read from the tier failed",
    ),
    column("offset", LONG, "Offset; null where the line names none"),
    column("log_start_offset", LONG, "Of a log that is loaded: where the partition begins; null elsewhere"),
    column("segment_id", STRING, "Id of the remote segment"),
    column("reason", STRING, "Why, as logged; of a read that failed the exception"),
    words={"event": "local_start log_start copied expired read_failed"},
)

SEGMENT_ROLLS = silver_table(
    "segment_rolls",
    "A replica's log began a new segment: what is fetched from before it is answered at once.",
    *(c.TOPIC, c.PARTITION),
    column("base_offset", LONG, "First offset of the new segment; null up to 0.11, which does not log it"),
    required("duration_ms", LONG, "How long the roll took"),
    column("log_dir", STRING, "Directory of the log, by the line (1.1 and later): see silver.future_logs"),
)

FUTURE_LOGS = silver_table(
    "future_logs",
    "A replica is moved between log directories of its broker (KIP-113): the log in the other directory is no replica "
    "until it replaces it.",
    *(c.TOPIC, c.PARTITION),
    required(
        "event",
        STRING,
        "created: the future log; loaded: it was there at the broker's start; copying: it is filled from the replica; "
        "promoted: it is the replica from here on",
    ),
    column("log_dir", STRING, "Directory of the future log; null where the line names none"),
    words={"event": "created loaded copying promoted"},
)
