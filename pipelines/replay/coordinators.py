"""Coordinators' requests as appends to internal topics.

A group or transaction coordinator answers a request once its record is replicated: through ``ReplicaManager`` and the
produce purgatory, with acks=all, like a client's produce (``GroupMetadataManager.appendForGroup``,
``TransactionStateManager.appendTransactionToLog``, ``KafkaApis.handleWriteTxnMarkersRequest``). The record goes to the
partition that the group's or transaction's id hashes to (`pipelines.replay.java_hash`). No line tells that partition,
nor the offset: both are derived, predict instants, and prove nothing.

Not here, because no request's answer waits for them: a transaction's completion record (written when all markers are),
tombstones of expired offsets, and a group's metadata when its last member leaves. Followers' fetches show those.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pipelines.replay.context import OFFSETS_PARTITIONS, TRANSACTIONS_PARTITIONS, Contexts

GROUP_TOPIC = "__consumer_offsets"
TRANSACTION_TOPIC = "__transaction_state"

_COUNT_KEYS = {
    GROUP_TOPIC: (OFFSETS_PARTITIONS, 50),
    TRANSACTION_TOPIC: (TRANSACTIONS_PARTITIONS, 50),
}
_GROUP_APIS = ("OFFSET_COMMIT", "TXN_OFFSET_COMMIT", "SYNC_GROUP")
_TRANSACTION_APIS = ("INIT_PRODUCER_ID", "ADD_PARTITIONS_TO_TXN", "ADD_OFFSETS_TO_TXN", "END_TXN")
#: Requests whose answer waits for an append that they caused.
APIS = (*_GROUP_APIS, *_TRANSACTION_APIS, "WRITE_TXN_MARKERS")


def partition_count(contexts: Contexts, topic: str) -> Column:
    """Partitions of an internal topic, by cluster_id.

    A topic is made once, with what brokers' configuration says by then: what it says later changes nothing.
    """
    key, default = _COUNT_KEYS[topic]
    column = F.lit(default)
    for cluster_id, count in sorted(contexts.first_counts(key).items()):
        if count != default:
            column = F.when(F.col("cluster_id") == cluster_id, count).otherwise(column)
    return column


def records(requests: DataFrame, contexts: Contexts) -> DataFrame:
    """Requests that appended a coordinator's records, with ``partitions`` replaced by the one appended to.

    A request that was answered without waiting appended nothing: the partition was in the transaction already, the
    group's follower got its assignment at once, an error was answered.

    Args:
        requests: rows of ``silver.requests``.
        contexts: configuration of the brokers.
    """
    group = F.col("api").isin(*_GROUP_APIS)
    topic = F.when(group, F.lit(GROUP_TOPIC)).otherwise(F.lit(TRANSACTION_TOPIC))
    key = F.when(group, F.col("group_id")).otherwise(F.col("transactional_id"))
    written = (
        F.when(F.col("api").isin("OFFSET_COMMIT", "TXN_OFFSET_COMMIT"), F.coalesce("records", F.lit(0)))
        .when(F.col("api") == "SYNC_GROUP", F.when(F.coalesce("assignments", F.lit(0)) > 0, 1).otherwise(0))
        .otherwise(F.when(F.coalesce("verify_only", F.lit(False)), 0).otherwise(1))
    )
    answered_well = F.col("error_codes").isNull() | (F.size("error_codes") == 0) | F.array_contains("error_codes", 0)
    rows = (
        requests.where(F.col("api").isin(*_GROUP_APIS, *_TRANSACTION_APIS) & (F.col("remote_time_ms") > 0))
        .where(answered_well)
        .withColumn("records", written)
        .withColumn("internal_topic", topic)
        .withColumn("key", key)
        .where("records > 0 AND key IS NOT NULL")
    )
    count = F.when(group, partition_count(contexts, GROUP_TOPIC)).otherwise(
        partition_count(contexts, TRANSACTION_TOPIC)
    )
    part = F.struct(
        F.col("internal_topic").alias("topic"),
        F.pmod(java_hash("key"), count.cast("long")).cast("int").alias("partition"),
        F.lit(0).alias("error_code"),
    )
    return rows.withColumn("partitions", F.array(part))


def java_hash(name: str) -> Column:
    """`pipelines.replay.java_hash.absolute` of the hash of a column of text in characters of one UTF-16 unit."""
    step = f"aggregate(split({name}, ''), 0L, (h, c) -> (h * 31 + if(c = '', 0, ascii(c))) & 4294967295L"
    # Both signs of a value lie as far from 0 and from 2^32; the least integer counts as 0.
    return F.expr(f"{step}, h -> if(h = 2147483648L, 0L, least(h, 4294967296L - h)))")


def markers(requests: DataFrame, asked: DataFrame) -> DataFrame:
    """WriteTxnMarkers among the requests asked for, a row per marked partition ``part``, and whose transaction it ends.

    A marker names the producer id, a produce the transactional id (``producer``); the transaction's own requests, which
    may be older than those asked for, name both.

    Args:
        requests: rows of ``silver.requests``, all.
        asked: those of them whose markers are wanted.
    """
    told = requests.where("transactional_id IS NOT NULL AND producer_id >= 0")
    names = told.groupBy("cluster_id", F.col("producer_id").alias("marked_producer_id")).agg(
        F.max("transactional_id").alias("producer")
    )
    rows = asked.where("api = 'WRITE_TXN_MARKERS'").withColumn("part", F.explode("partitions"))
    rows = rows.withColumn("marked_producer_id", F.col("part.producer_id"))
    rows = rows.withColumn("topic", F.col("part.topic")).withColumn("partition", F.col("part.partition"))
    return rows.join(F.broadcast(names), ["cluster_id", "marked_producer_id"], "left")


def transactional_clients(requests: DataFrame) -> DataFrame:
    """Clients that use one transactional id: cluster_id, client_id, ``remote_host``, ``inferred_id``.

    Request logs before 2.8 do not print a produce's transactional id. A transactional producer sends nothing outside
    of transactions, so whoever added partitions to one under this name and from this host is taken for the sender.
    """
    told = requests.where("api IN ('ADD_PARTITIONS_TO_TXN', 'INIT_PRODUCER_ID') AND transactional_id IS NOT NULL")
    named = told.withColumn("remote_host", remote_host()).groupBy("cluster_id", "client_id", "remote_host")
    ids = named.agg(F.min("transactional_id").alias("inferred_id"), F.max("transactional_id").alias("last_id"))
    return ids.where("inferred_id = last_id").drop("last_id")


def remote_host() -> Column:
    """The client's host, from a connection ``local:port-remote:port-index``."""
    return F.regexp_extract("connection", r"^.*:\d+-(.*):\d+(?:-\d+)*$", 1)
