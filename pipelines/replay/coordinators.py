"""Coordinators' requests as appends to internal topics.

A group or transaction coordinator answers a request once its record is replicated. It uses ``ReplicaManager`` and the
produce purgatory with acks=all, like a client's produce (``GroupMetadataManager.appendForGroup``,
``TransactionStateManager.appendTransactionToLog``, ``KafkaApis.handleWriteTxnMarkersRequest``). The partition of the
record is the hash of the group id or transactional id (`pipelines.replay.java_hash`). The state of a share group's
partition goes to the hash of group, topic id and partition together (KIP-932, ``ShareCoordinatorService``). No line
shows that partition or the offset. Both are derived: they predict times and prove nothing.

Left out, because no request waits for them: completion records of transactions (written after all markers), tombstones
of expired offsets, and a group's metadata when its last member leaves. Followers' fetches show those appends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from highwater.pipelines.base.arrow_rows import both, is_in
from highwater.pipelines.grammars.coordinator_bodies import SHARE_STATE_APIS
from highwater.pipelines.kafka.context import (
    OFFSETS_PARTITIONS,
    SHARE_STATES_PARTITIONS,
    TRANSACTIONS_PARTITIONS,
    Contexts,
)
from highwater.pipelines.replay.java_hash import partition_of
from highwater.schemas.topics import GROUP_TOPIC, SHARE_TOPIC, TRANSACTION_TOPIC

#: ``offsets.topic.num.partitions``, ``transaction.state.log.num.partitions`` and
#: ``share.coordinator.state.topic.num.partitions`` unless configured.
_PARTITIONS: Final = 50
GROUP_APIS = ("OFFSET_COMMIT", "TXN_OFFSET_COMMIT", "SYNC_GROUP")
_TRANSACTION_APIS = ("INIT_PRODUCER_ID", "ADD_PARTITIONS_TO_TXN", "ADD_OFFSETS_TO_TXN", "END_TXN")


_PART = pa.struct([("topic", pa.string()), ("partition", pa.int32()), ("error_code", pa.int32())])


class Counts(NamedTuple):
    """Partition counts of the internal topics of coordinators, by cluster, where they differ from the default.

    A topic is created once, with the configuration of that time. Later configuration changes nothing.
    """

    groups: Mapping[str, int]
    transactions: Mapping[str, int]
    shares: Mapping[str, int]


BY_DEFAULT: Final = Counts({}, {}, {})


def counts_of(contexts: Contexts) -> Counts:
    """Return the partition counts that the brokers' configuration shows."""
    keys = (OFFSETS_PARTITIONS, TRANSACTIONS_PARTITIONS, SHARE_STATES_PARTITIONS)
    return Counts(*map(contexts.list_first_counts, keys))


def _count_states(group_id: str, asked: Iterable[Mapping[str, Any]], count: int) -> Counter[int]:
    """Count the records that a share group's request wrote, by partition of the share state topic.

    Args:
        asked: partitions of the request, with topic id and error code.
        count: number of partitions of the share state topic (``SharePartitionKey``).
    """
    return Counter(
        partition_of(f"{group_id}:{part['topic_id']}:{part['partition']}", count)
        for part in asked
        if not part["error_code"]
    )


def records(requests: pa.RecordBatch, counts: Counts) -> pa.RecordBatch:
    """Return the requests that appended records to an internal topic. ``partitions`` holds the partition appended to.

    A request that was answered without waiting appended nothing. Examples: a partition that was already in the
    transaction, a group follower whose assignment was ready, an error.

    Args:
        requests: rows of ``silver.requests``.
        counts: partition counts of the internal topics.
    """
    waited = both(
        is_in(requests.column("api"), (*GROUP_APIS, *_TRANSACTION_APIS, *SHARE_STATE_APIS)),
        pc.greater(requests.column("remote_time_ms"), 0),
    )
    requests = requests.filter(waited)
    written, parts = [], []
    names = ("cluster_id", "api", "error_codes", "group_id", "transactional_id", "records", "assignments")
    for row in requests.select([*names, "verify_only", "partitions"]).to_pylist():
        cluster_id, api, group_id = row["cluster_id"], row["api"], row["group_id"]
        if api in SHARE_STATE_APIS:
            places = _count_states(group_id, row["partitions"], counts.shares.get(cluster_id, _PARTITIONS))
            written.append(max(places.values(), default=0))
            if places:
                parts.append([{"topic": SHARE_TOPIC, "partition": at, "error_code": 0} for at in places])
            continue
        is_group = api in GROUP_APIS
        key = group_id if is_group else row["transactional_id"]
        if (row["error_codes"] and 0 not in row["error_codes"]) or key is None:
            count = 0
        elif api in ("OFFSET_COMMIT", "TXN_OFFSET_COMMIT"):
            count = row["records"] or 0
        elif api == "SYNC_GROUP":
            count = int((row["assignments"] or 0) > 0)
        else:
            count = int(not row["verify_only"])
        written.append(count)
        if count > 0:
            topic, by_cluster = (GROUP_TOPIC, counts.groups) if is_group else (TRANSACTION_TOPIC, counts.transactions)
            partition = partition_of(key, by_cluster.get(cluster_id, _PARTITIONS))
            parts.append([{"topic": topic, "partition": partition, "error_code": 0}])
    appended = pa.array([count > 0 for count in written], pa.bool_())
    rows = requests.drop_columns(["partitions", "records"]).filter(appended)
    rows = rows.append_column("partitions", pa.array(parts, pa.list_(_PART)))
    return rows.append_column("records", pa.array([count for count in written if count > 0], pa.int32()))
