"""The check of T3 on Spark, on lines of a real broker: whole, cut, doubled and tampered with."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from highwater.pipelines.base.config import load_config
from highwater.pipelines.cluster.premises import Premises
from highwater.pipelines.cluster.stage import collect_premises
from highwater.pipelines.kafka.context import Contexts
from highwater.pipelines.lake.lake import Lake
from highwater.pipelines.replay.checks_stage import checked_blobs
from highwater.pipelines.silver.parse import parse
from highwater.schemas import silver
from highwater.schemas.checks import PURGATORY_CHECKS
from tests.ingests import ingest

pytestmark = pytest.mark.spark

CLUSTER = "2qm8FOvwQQiavfUpxdjAWA"
#: Broker 1 of a 2.8.2 cluster: two produces to a partition that it leads.
SERVER = """\
[2026-11-20 15:52:30,633] INFO Cluster ID = 2qm8FOvwQQiavfUpxdjAWA (kafka.server.KafkaServer)
[2026-11-20 15:52:32,470] INFO Kafka version: 2.8.2 (org.apache.kafka.common.utils.AppInfoParser)
[2026-11-20 15:52:32,471] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)
[2026-11-20 15:52:39,368] TRACE Initial partition status for transfers-0 is {pending2} (kafka.server.DelayedProduce)
[2026-11-20 15:52:39,368] TRACE {checking} {pending2} (kafka.server.DelayedProduce)
[2026-11-20 15:52:39,368] TRACE {progress} 2: acked: Set(broker 1: 2), awaiting Set(broker 2: 1, broker 3: 1) {source}
[2026-11-20 15:52:39,368] TRACE {checking} {pending2} (kafka.server.DelayedProduce)
[2026-11-20 15:52:39,368] TRACE {progress} 2: acked: Set(broker 1: 2), awaiting Set(broker 2: 1, broker 3: 1) {source}
[2026-11-20 15:52:39,376] DEBUG {partition} Recorded replica 2 log end offset (LEO) position 2 {start} {source}
[2026-11-20 15:52:39,376] DEBUG {partition} {moved} (offset=1 segment=[0:280]) to (offset=2 segment=[0:420]) {source}
[2026-11-20 15:52:39,377] TRACE {checking} {pending2} (kafka.server.DelayedProduce)
[2026-11-20 15:52:39,377] TRACE {progress} 2: acked: Set(broker 2: 2, broker 3: 2, broker 1: 2), awaiting Set() {source}
[2026-11-20 15:52:39,378] DEBUG {key} unblocked 1 Produce operations (kafka.server.DelayedOperationPurgatory)
[2026-11-20 15:52:39,378] DEBUG {partition} Recorded replica 3 log end offset (LEO) position 2 {start} {source}
[2026-11-20 15:52:40,423] TRACE Initial partition status for transfers-0 is {pending3} (kafka.server.DelayedProduce)
[2026-11-20 15:52:40,423] TRACE {checking} {pending3} (kafka.server.DelayedProduce)
[2026-11-20 15:52:40,423] TRACE {progress} 3: acked: Set(broker 1: 3), awaiting Set(broker 2: 2, broker 3: 2) {source}
[2026-11-20 15:52:40,423] TRACE {checking} {pending3} (kafka.server.DelayedProduce)
[2026-11-20 15:52:40,423] TRACE {progress} 3: acked: Set(broker 1: 3), awaiting Set(broker 2: 2, broker 3: 2) {source}
[2026-11-20 15:52:40,431] DEBUG {partition} Recorded replica 3 log end offset (LEO) position 3 {start} {source}
[2026-11-20 15:52:40,434] DEBUG {partition} {moved} (offset=2 segment=[0:420]) to (offset=3 segment=[0:667]) {source}
[2026-11-20 15:52:40,434] TRACE {checking} {pending3} (kafka.server.DelayedProduce)
[2026-11-20 15:52:40,434] TRACE {progress} 3: acked: Set(broker 2: 3, broker 3: 3, broker 1: 3), awaiting Set() {source}
[2026-11-20 15:52:40,435] DEBUG {key} unblocked 1 Produce operations (kafka.server.DelayedOperationPurgatory)
""".format(
    partition="[Partition transfers-0 broker=1]",
    pending2="[acksPending: true, error: 7, startOffset: 1, requiredOffset: 2]",
    pending3="[acksPending: true, error: 7, startOffset: 2, requiredOffset: 3]",
    checking="Checking produce satisfaction for transfers-0, current status",
    progress="[Partition transfers-0 broker=1] Progress awaiting ISR acks for offset",
    moved="High watermark updated from",
    start="and log start offset 0.",
    key="Request key TopicPartitionOperationKey(transfers,0)",
    source="(kafka.cluster.Partition)",
)
STATE_CHANGE = (
    "[2026-11-20 15:52:35,159] INFO [Broker id=1] Leader transfers-0 starts at leader epoch 0 from offset 0 with high "
    "watermark 0 ISR [1,2,3] addingReplicas [] removingReplicas []. Previous leader epoch was -1. "
    "(state.change.logger)\n"
)
REQUESTS = (
    '[2026-11-20 15:52:40,435] DEBUG Completed request:{"isForwarded":false,"requestHeader":{"requestApiKey":0,'
    '"requestApiVersion":9,"correlationId":4,"clientId":"w0","requestApiKeyName":"PRODUCE"},"request":'
    '{"transactionalId":null,"acks":-1,"timeoutMs":20000,"topicData":[{"name":"transfers","partitionData":[{"index":0,'
    '"recordsSizeInBytes":247}]}]},"response":{"responses":[{"name":"transfers","partitionResponses":[{"index":0,'
    '"errorCode":0,"baseOffset":2,"logAppendTimeMs":-1,"logStartOffset":0,"recordErrors":[],"errorMessage":null}]}],'
    '"throttleTimeMs":0},"connection":"127.0.0.1:19093-127.0.0.1:33688-3","totalTimeMs":12.9,"requestQueueTimeMs":0.2,'
    '"localTimeMs":1.1,"remoteTimeMs":11.3,"throttleTimeMs":0,"responseQueueTimeMs":0.1,"sendTimeMs":0.1,'
    '"securityProtocol":"PLAINTEXT","principal":"User:ANONYMOUS","listener":"PLAINTEXT","clientInformation":'
    '{"softwareName":"confluent-kafka-python","softwareVersion":"2.16.1-rdkafka-2.16.0"}} (kafka.request.logger)\n'
)
LINES = SERVER.splitlines(keepends=True)
#: Line at which the log is cut: amid a millisecond, between two checks that are equal.
CUT = 6
#: The second check of the second produce, with its progress: nothing happens that would cause them once more.
SECOND_CHECK = slice(17, 19)

BROKERS = range(1, 7)
WHOLE, IN_PIECES, TWICE, TAMPERED, UNCAUSED, UNCAUSED_UNREQUESTED = BROKERS


def write(logs: Path, broker: int, requests: bool = True, **servers: list[str]) -> None:
    """The broker's files; server logs by the suffix of their name."""
    folder = logs / f"broker-{broker}"
    folder.mkdir(parents=True)
    files = {f"server.log{suffix}": "".join(lines) for suffix, lines in servers.items()}
    files["state-change.log"] = STATE_CHANGE
    for name, text in files.items():
        own = text.replace("broker=1]", f"broker={broker}]").replace(" id=1]", f" id={broker}]")
        (folder / name).write_text(own, encoding="utf-8")
    if requests:
        # A file that is there twice, byte by byte, is one file.
        own = REQUESTS.replace("127.0.0.1:19093", f"127.0.0.1:1909{broker}")
        (folder / "kafka-request.log").write_text(own, encoding="utf-8")


@pytest.fixture(scope="module")
def checked(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake with the logs of `BROKERS`, each made of the same one, and their checks."""
    logs = tmp_path_factory.mktemp("logs")
    tampered = list(LINES)
    tampered[10] = tampered[10].replace("acksPending: true, error: 7", "acksPending: false, error: 6")
    uncaused = [*LINES[: SECOND_CHECK.stop], *LINES[SECOND_CHECK], *LINES[SECOND_CHECK.stop :]]
    write(logs, WHOLE, **{"": LINES})
    write(logs, IN_PIECES, **{".1": LINES[:CUT], "": LINES[CUT:]})
    # Collected before, while it grew, and now.
    write(logs, TWICE, **{".before": LINES[:20], "": LINES})
    write(logs, TAMPERED, **{"": tampered})
    write(logs, UNCAUSED, **{"": uncaused})
    write(logs, UNCAUSED_UNREQUESTED, requests=False, **{"": uncaused})
    lake = Lake(spark, tmp_path_factory.mktemp("lake"))
    ingest(spark, lake, [logs], load_config(None).ingest, "run")
    parse(lake)
    contexts = Contexts({(CLUSTER, broker): "2.8.2" for broker in BROKERS})
    blobs = checked_blobs(lake, replace(collect_premises(lake, 0), contexts=contexts))
    assert blobs is not None
    lake.create([PURGATORY_CHECKS])
    lake.replace_files(PURGATORY_CHECKS, lake.write_blobs(blobs, [PURGATORY_CHECKS]), "run")
    return lake


@pytest.fixture(scope="module")
def rows(checked: Lake) -> dict[int, list[Row]]:
    """Rows by broker, in the order of their offsets."""
    table: DataFrame = checked.read(PURGATORY_CHECKS).orderBy("required_offset")
    found: dict[int, list[Row]] = {}
    for row in table.collect():
        found.setdefault(row["broker_id"], []).append(row)
    return found


def test_lines_of_a_broker_agree_with_the_rules(rows: dict[int, list[Row]]):
    first, second = rows[WHOLE]
    assert (first["cluster_id"], first["topic"], first["partition"]) == (CLUSTER, "transfers", 0)
    assert (first["start_offset"], first["required_offset"]) == (1, 2)
    assert first["created_time"].astimezone(UTC) == datetime(2026, 11, 20, 15, 52, 39, 368_000, UTC)
    assert (first["checks"], first["done"], first["agrees"], first["reason"]) == (3, True, True, None)
    assert (second["required_offset"], second["agrees"]) == (3, True)


@pytest.mark.parametrize("broker", [IN_PIECES, TWICE])
def test_the_same_log_in_other_pieces_gives_the_same_rows(rows: dict[int, list[Row]], broker: int):
    def without_broker(found: list[Row]) -> list[dict[str, object]]:
        return [{name: value for name, value in row.asDict().items() if name != "broker_id"} for row in found]

    assert without_broker(rows[broker]) == without_broker(rows[WHOLE])


def test_a_line_that_was_tampered_with_is_reported_once(rows: dict[int, list[Row]]):
    first, second = rows[TAMPERED]
    assert (first["agrees"], first["reason"]) == (False, "status")
    assert first["disagreed_time"].astimezone(UTC) == datetime(2026, 11, 20, 15, 52, 39, 377_000, UTC)
    assert (first["predicted_pending"], first["predicted_error_code"]) == (True, 7)
    assert (first["logged_pending"], first["logged_error_code"]) == (False, 6)
    assert second["agrees"] is True


def test_a_check_without_cause_shows_where_a_request_tells_that_it_has_one_partition(rows: dict[int, list[Row]]):
    assert [(row["agrees"], row["reason"]) for row in rows[UNCAUSED]] == [(True, None), (False, "no_trigger")]
    assert [row["agrees"] for row in rows[UNCAUSED_UNREQUESTED]] == [True, True]


def test_there_is_nothing_to_check_below_t3(spark: SparkSession, lake: Lake):
    lake.create(silver.TABLES)
    assert checked_blobs(lake, Premises()) is None
