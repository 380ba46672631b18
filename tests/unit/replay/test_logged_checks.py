"""The model of the purgatory agrees with delayed produces that brokers logged at TRACE, not with changed lines."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.log_tables import read_logs
from tests.unit.replay.purgatory.check_lines import CheckedProduce
from tests.unit.replay.purgatory.check_rows import checked_produces
from tests.verbs import CORPORA

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


def check(folder: Path, requests: bool = True, **servers: list[str]) -> list[CheckedProduce]:
    """Check the produces of a broker with these server logs, by the suffixes of their names."""
    folder.mkdir(exist_ok=True)
    files = {f"server.log{suffix}": "".join(lines) for suffix, lines in servers.items()}
    files["state-change.log"] = STATE_CHANGE
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    if requests:
        (folder / "kafka-request.log").write_text(REQUESTS, encoding="utf-8")
    return checked_produces(read_logs(folder))


UNCAUSED = [*LINES[: SECOND_CHECK.stop], *LINES[SECOND_CHECK], *LINES[SECOND_CHECK.stop :]]


def test_lines_of_a_broker_agree_with_the_rules(tmp_path: Path):
    first, second = check(tmp_path, **{"": LINES})
    assert (first.start_offset, first.required_offset) == (1, 2)
    assert (first.checks, first.done, first.agrees, first.reason) == (3, True, True, None)
    assert (second.required_offset, second.agrees) == (3, True)


@pytest.mark.parametrize(
    "servers",
    [
        pytest.param({".1": LINES[:CUT], "": LINES[CUT:]}, id="in pieces"),
        pytest.param({".before": LINES[:20], "": LINES}, id="collected before, while it grew, and now"),
    ],
)
def test_the_same_log_in_other_pieces_gives_the_same_produces(tmp_path: Path, servers: dict[str, list[str]]):
    assert check(tmp_path / "pieces", **servers) == check(tmp_path / "whole", **{"": LINES})


def test_a_changed_line_is_reported_once(tmp_path: Path):
    changed = list(LINES)
    changed[10] = changed[10].replace("acksPending: true, error: 7", "acksPending: false, error: 6")
    first, second = check(tmp_path, **{"": changed})
    assert (first.agrees, first.reason) == (False, "status")
    assert (first.predicted, first.logged) == ((True, 7), (False, 6))
    assert second.agrees is True


@pytest.mark.parametrize(("requests", "second"), [(True, (False, "no_trigger")), (False, (True, None))])
def test_a_request_shows_that_a_produce_of_one_partition_is_checked_without_cause(
    tmp_path: Path, requests: bool, second: tuple[bool, str | None]
):
    produces = check(tmp_path, requests, **{"": UNCAUSED})
    assert [(produce.agrees, produce.reason) for produce in produces] == [(True, None), second]


@pytest.mark.skipif(not CORPORA.is_dir(), reason="the large corpora are not beside this checkout")
def test_produces_of_a_real_cluster_agree():
    produces = checked_produces(read_logs(CORPORA / "kip101"))
    # Logs end while two of them wait.
    assert Counter(produce.agrees for produce in produces) == {True: 709, None: 2}
