"""Facts as large as the traffic: fetches, high watermarks, appends, answers. They stream through the rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from pipelines.lake import Lake
from pipelines.premises import Premises
from pipelines.premises_stage import exploded, named, with_topic_names
from pipelines.replay.versions import rules_for
from pipelines.rules.facts.columns import fact, line_fact, micros
from schemas import audit_facts as a


def fetches(rows: DataFrame) -> DataFrame:
    """Followers' fetches with their answers."""
    rows = rows.where("broker_id IS NOT NULL AND (fetch_offset IS NOT NULL OR response_high_watermark IS NOT NULL)")
    return line_fact(
        rows,
        a.FETCH,
        "topic_id replica_id connection correlation_id",
        name="source",
        leader_epoch=F.when(F.col("leader_epoch") >= 0, F.col("leader_epoch")),
        offset="fetch_offset",
        high_watermark=F.when(F.col("response_high_watermark") >= 0, F.col("response_high_watermark")),
        previous="last_fetched_epoch",
        error_code="response_error_code",
        size_bytes="response_bytes",
        earliest_us=micros("arrival_time"),
        latest_us=micros("completed_time"),
        end_offset="diverging_end_offset",
    )


def high_watermarks(rows: DataFrame) -> DataFrame:
    """Lines of high watermarks that leaders and followers moved."""
    return line_fact(
        rows.where("source IN ('updated', 'non_monotonic', 'follower') AND high_watermark IS NOT NULL"),
        a.HIGH_WATERMARK,
        "high_watermark",
        name="source",
        previous="previous_high_watermark",
        offset="leader_high_watermark",
        end_offset="log_end_offset",
    )


def without_retries(versions: Mapping[tuple[str, int], str]) -> list[tuple[str, int]]:
    """Brokers, with their clusters, before 0.11."""
    return [node for node, version in versions.items() if not rules_for(version).knows_retries]


def appends(rows: DataFrame, old: Sequence[tuple[str, int]]) -> DataFrame:
    """What leaders before 0.11 appended: later ones write the same line for a retry that they only recognise.

    Args:
        old: `without_retries`.
    """
    nodes = F.broadcast(rows.sparkSession.createDataFrame(list(old), "cluster_id string, broker_id int"))
    # A leader's own: followers append through another path.
    leaders = rows.where("source = 'replica_manager' AND first_offset >= 0")
    leaders = leaders.join(nodes, ["cluster_id", "broker_id"], "left_semi")
    end = F.when(F.col("last_offset") >= F.col("first_offset"), F.col("last_offset") + 1)
    return line_fact(leaders, a.APPEND, "size_bytes", name="source", offset="first_offset", end_offset=end)


def reads(lake: Lake, premises: Premises, rows: DataFrame) -> DataFrame:
    """Answers with records at or past the limit that the same answer gives: the high watermark, or last stable offset.

    ``previous`` is the limit of the next answer on that connection in the same epoch: limits only grow within one.
    """
    rows = rows.where("broker_id IS NOT NULL AND replica_id < 0 AND size(partitions) > 0")
    asked = rows.withColumn("asked", F.explode("partitions"))
    same = "coalesce(r.topic, r.topic_id) = coalesce(asked.topic, asked.topic_id) AND r.partition = asked.partition"
    answers = F.expr(f"filter(responses, r -> {same} AND coalesce(r.error_code, 0) = 0)")
    asked = asked.withColumn("answer", F.get(answers, F.lit(0)))
    limit = F.when(F.col("isolation_level") == 1, F.col("answer.last_stable_offset")).otherwise(
        F.col("answer.high_watermark")
    )
    asked = asked.select(
        "*",
        F.coalesce("asked.topic", F.concat(F.lit("id:"), "asked.topic_id")).alias("topic"),
        F.col("asked.partition").alias("partition"),
        F.col("asked.topic_id").alias("topic_id"),
        F.col("asked.current_leader_epoch").alias("epoch"),
        limit.alias("limit"),
    )
    chain = Window.partitionBy("cluster_id", "broker_id", "connection", "topic", "partition").orderBy("correlation_id")
    after = F.lead(F.struct("epoch", "limit", "time", "topic_id")).over(chain)
    beyond = asked.withColumn("after", after).where(
        (F.col("limit") >= 0) & (F.col("asked.fetch_offset") >= F.col("limit")) & (F.col("answer.size_bytes") > 0)
    )
    follows = (
        (F.col("after.epoch") == F.col("epoch"))
        & (F.col("epoch") >= 0)
        & (F.col("after.time") >= F.col("time"))
        & F.col("after.topic_id").eqNullSafe(F.col("topic_id"))
    )
    return line_fact(
        named(lake, premises, beyond),
        a.READ,
        "topic_id connection correlation_id",
        name=F.when(F.col("isolation_level") == 1, "read_committed").otherwise("read_uncommitted"),
        offset="asked.fetch_offset",
        previous=F.when(follows, F.col("after.limit")),
        leader_epoch="epoch",
        high_watermark="answer.high_watermark",
        end_offset="answer.last_stable_offset",
        size_bytes="answer.size_bytes",
        client="client_id",
    )


def operations(rows: DataFrame) -> DataFrame:
    """Partitions of acks=all appends as replayed.

    ``latest_us`` is when the request had been handled, ``log_append_time_us`` when it was answered, ``end_offset`` the
    required offset if the broker logged it: one that is derived proves nothing. ``isr`` is null where no line told it
    to the replay, which then took those who fetched for its members. ``derived`` says how the place of the
    records is known where no answer told it.
    """
    return fact(
        exploded(rows.where("operation = 'produce'")),
        a.OPERATION,
        "broker_id connection correlation_id",
        name="class",
        time_us=micros("line_time"),
        leader_epoch="part.leader_epoch",
        offset=F.when(F.col("part.base_offset") >= 0, F.col("part.base_offset")),
        end_offset="part.required_offset_logged",
        replica_id="closing_replica",
        isr=F.when(~F.col("part.isr_inferred"), F.col("part.isr")),
        error_code="part.error_code",
        earliest_us=micros("part.lowest_time"),
        latest_us=micros("handled_time"),
        log_append_time_us=micros("completed_time"),
        previous=F.when(F.col("class") == "late", F.col("residual_ms").cast("long")),
        client="client_id",
        detail=F.concat_ws("|", F.coalesce("class_reason", F.lit("")), F.coalesce("known_bug", F.lit("")), "api"),
        derived=F.when(F.col("api") == "WRITE_TXN_MARKERS", a.COUNTED_OFFSET)
        .when(F.col("api") != "PRODUCE", a.COMPUTED_PARTITION)
        .when(F.col("part.error_code").isNull(), a.MATCHED_APPEND),
    )


def answers(lake: Lake, premises: Premises, rows: DataFrame) -> DataFrame:
    """Every answer to a produce that gave an offset."""
    appended = F.when(F.col("part.log_append_time_ms") >= 0, F.col("part.log_append_time_ms") * 1000)
    return line_fact(
        with_topic_names(lake, premises, rows).where("part.base_offset >= 0"),
        a.ANSWER,
        "connection correlation_id",
        name=F.when(F.col("acks") == -1, "all").otherwise(F.col("acks").cast("string")),
        offset="part.base_offset",
        error_code="part.error_code",
        size_bytes="part.size_bytes",
        earliest_us=micros("dequeued_time"),
        latest_us=micros("handled_time"),
        log_append_time_us=appended,
        client="client_id",
        detail="transactional_id",
    )
