"""The request log."""

from __future__ import annotations

from schemas import columns as c
from schemas.silver.source import silver_table
from schemas.table import BOOLEAN, DOUBLE, INT, INTS, LONG, STRING, TIMESTAMP, column, required, structs

REQUEST_HEADER = (
    required("api", STRING, "API name: PRODUCE, FETCH, ..."),
    column("api_version", INT, "API version"),
    c.CORRELATION_ID,
    c.CLIENT_ID,
    column("connection", STRING, "Connection: local address - remote address - index"),
    column("listener", STRING, "Listener name"),
    column("principal", STRING, "Principal"),
    required("arrival_time", TIMESTAMP, "Request read from the socket: line time - total_time_ms (an upper bound)"),
    required("dequeued_time", TIMESTAMP, "arrival + request_queue_time_ms"),
    required("handled_time", TIMESTAMP, "dequeued + local_time_ms"),
    required("completed_time", TIMESTAMP, "handled + remote_time_ms: the purgatory (or the handler) answered"),
    required("total_time_ms", DOUBLE, "totalTimeMs"),
    required("request_queue_time_ms", DOUBLE, "Waiting for a request handler"),
    required("local_time_ms", DOUBLE, "In the request handler"),
    required("remote_time_ms", DOUBLE, "Waiting in purgatory or for another broker"),
    required("throttle_time_ms", DOUBLE, "Throttled by a quota"),
    required("response_queue_time_ms", DOUBLE, "Waiting for a network thread"),
    required("send_time_ms", DOUBLE, "Sending the response"),
)

_PLACE = (
    column("topic", STRING, "Topic; null where only a topic id is known"),
    column("topic_id", STRING, "Topic id"),
    required("partition", INT, "Partition"),
)

PRODUCE_REQUESTS = silver_table(
    "produce_requests",
    "One completed PRODUCE request.",
    *REQUEST_HEADER,
    required("acks", INT, "acks of the request; -1 is all"),
    column("timeout_ms", INT, "timeoutMs of the request"),
    column("transactional_id", STRING, "transactionalId"),
    required(
        "partitions",
        structs(
            c.TOPIC,
            required("partition", INT, "Partition"),
            column("size_bytes", LONG, "Size of the records"),
            column("error_code", INT, "Error code of the response; null where the log has no response"),
            column("base_offset", LONG, "Base offset of the response; -1 where it failed"),
            column("log_append_time_ms", LONG, "logAppendTimeMs of the response"),
            column("log_start_offset", LONG, "logStartOffset of the response"),
        ),
        "Partitions of the request with what was answered",
    ),
    is_traffic=True,
    words={"api": "PRODUCE"},
)

FETCH_REQUESTS = silver_table(
    "fetch_requests",
    "One completed FETCH request of a consumer or a follower.",
    *REQUEST_HEADER,
    required("replica_id", INT, "Follower's broker id; -1 for consumers"),
    column("max_wait_ms", INT, "maxWaitMs"),
    column("min_bytes", INT, "minBytes"),
    column("max_bytes", INT, "maxBytes"),
    column("isolation_level", INT, "0 read_uncommitted, 1 read_committed"),
    column("session_id", INT, "sessionId of the request; 0 for none"),
    column("session_epoch", INT, "sessionEpoch of the request"),
    column("rack_id", STRING, "Rack that a consumer names: a follower in it may serve it; null without one"),
    column("response_session_id", INT, "sessionId of the response"),
    column("error_code", INT, "Top-level error code of the response"),
    required(
        "partitions",
        structs(
            *_PLACE,
            column("current_leader_epoch", INT, "currentLeaderEpoch"),
            column("fetch_offset", LONG, "fetchOffset"),
            column("last_fetched_epoch", INT, "lastFetchedEpoch"),
            column("log_start_offset", LONG, "Follower's logStartOffset"),
            column("max_bytes", INT, "partitionMaxBytes"),
        ),
        "Partitions that the request lists; an incremental session omits unchanged ones",
    ),
    required(
        "forgotten",
        structs(
            column("topic", STRING, "Topic"),
            column("topic_id", STRING, "Topic id"),
            required("partition", INT, "Partition"),
        ),
        "Partitions that leave the session",
    ),
    required(
        "responses",
        structs(
            *_PLACE,
            column("error_code", INT, "errorCode"),
            column("high_watermark", LONG, "highWatermark"),
            column("last_stable_offset", LONG, "lastStableOffset"),
            column("log_start_offset", LONG, "logStartOffset"),
            column("size_bytes", LONG, "Size of the records"),
            column("preferred_read_replica", INT, "preferredReadReplica"),
            column("diverging_epoch", INT, "divergingEpoch.epoch"),
            column("diverging_end_offset", LONG, "divergingEpoch.endOffset"),
        ),
        "Partitions that the response lists",
    ),
    is_traffic=True,
    words={"api": "FETCH"},
)

REQUESTS = silver_table(
    "requests",
    "One completed request of any other API, with the facts that the replay needs from its body.",
    *REQUEST_HEADER,
    column("is_forwarded", BOOLEAN, "Forwarded to the controller in an envelope"),
    column(
        "error_codes",
        INTS,
        "Distinct error codes found in the response, ascending; null where the log has none, or the API's is not read",
    ),
    column("group_id", STRING, "Group whose coordinator was asked, or that a transaction adds (AddOffsetsToTxn)"),
    column("transactional_id", STRING, "Transactional id; null if AddPartitionsToTxn is about several transactions"),
    column(
        "producer_id", LONG, "Producer id of the transaction; that of the response for InitProducerId, null if none"
    ),
    column("producer_epoch", INT, "Producer epoch that goes with producer_id"),
    column("committed", BOOLEAN, "How EndTxn ends the transaction: true commit, false abort"),
    column(
        "verify_only", BOOLEAN, "AddPartitionsToTxn asks of all its transactions only whether they have the partitions"
    ),
    column(
        "records", INT, "Offsets that OffsetCommit or TxnOffsetCommit was answered for without error: records written"
    ),
    column("assignments", INT, "Members that SyncGroup assigns partitions to: none unless it is the group leader's"),
    column("member_id", STRING, "Member of a share group that fetches or acknowledges"),
    column("share_session_epoch", INT, "shareSessionEpoch of ShareFetch and ShareAcknowledge; -1 ends the session"),
    column("min_bytes", INT, "minBytes of ShareFetch"),
    column("max_wait_ms", INT, "maxWaitMs of ShareFetch"),
    column("lock_timeout_ms", INT, "acquisitionLockTimeoutMs of the response: so long what was delivered is locked"),
    required(
        "partitions",
        structs(
            *_PLACE,
            column("error_code", INT, "Error code of the response"),
            column("acknowledge_error_code", INT, "Error code of what ShareFetch or ShareAcknowledge acknowledges"),
            column(
                "acquired",
                structs(
                    required("first_offset", LONG, "First offset"),
                    required("last_offset", LONG, "Last offset"),
                    required("delivery_count", INT, "How often they were delivered, this time included"),
                ),
                "Records that ShareFetch delivered, which it locks",
            ),
            column(
                "acknowledged",
                structs(
                    required("first_offset", LONG, "First offset"),
                    required("last_offset", LONG, "Last offset"),
                    required("types", INTS, "Of each, or of all: 0 gap, 1 accept, 2 release, 3 reject, 4 renew"),
                ),
                "What ShareFetch or ShareAcknowledge acknowledges",
            ),
            column("leader_epoch", INT, "Leader epoch asked for, proposed or told"),
            column("partition_epoch", INT, "Partition epoch or zkVersion"),
            column("isr", INTS, "ISR proposed (AlterPartition, AlterIsr) or told (LeaderAndIsr)"),
            column("end_offset", LONG, "End offset answered (OffsetForLeaderEpoch)"),
            column("producer_id", LONG, "Producer of the transaction (WriteTxnMarkers, AddPartitionsToTxn)"),
            column("committed", BOOLEAN, "Transaction result (WriteTxnMarkers): true commit, false abort"),
        ),
        "Partitions of WriteTxnMarkers, AddPartitionsToTxn, OffsetForLeaderEpoch, AlterPartition, AlterIsr, "
        "LeaderAndIsr, StopReplica; of ShareFetch, ShareAcknowledge, "
        "InitializeShareGroupState, WriteShareGroupState and DeleteShareGroupState",
    ),
    column(
        "body", STRING, "Request and response as logged, for APIs whose body no column holds; cut at 4,000 characters"
    ),
    is_traffic=True,
)
