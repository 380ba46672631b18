"""Lines of another cluster and broker in a log end no run, and later logs of the same lake are judged without them."""

from __future__ import annotations

import shutil
from pathlib import Path
from unittest import mock

import pytest

from highwater.jobs.exit_codes import ExitCode
from tests.damage import Damage, copy_of, damaged
from tests.spark.audits.conftest import Verb
from tests.verbs import SLICE, Ended

#: Lines before a server.log, by what is wrong with them.
FOREIGN = {
    "another cluster and broker": (
        "Cluster ID = AAAAAAAAAAAAAAAAAAAAAA (kafka.server.KafkaServer)",
        "[KafkaServer id=77] starting (kafka.server.KafkaServer)",
        "[Broker id=77] Follower orders-0 starts at leader epoch 7 from offset 0 with high watermark 0 ISR [77,1] "
        "addingReplicas [] removingReplicas []. Previous leader epoch was 6. (state.change.logger)",
        "[KafkaServer id=77] started (kafka.server.KafkaServer)",
    ),
    "starts of brokers that contradict each other": (
        "[KafkaServer id=2147483648] started (kafka.server.KafkaServer)",
        "[KafkaServer id=2] started (kafka.server.KafkaServer)",
        "[KafkaRaftServer nodeId=3] Kafka Server started (kafka.server.KafkaRaftServer)",
        "[BrokerServer id=] Transition from STARTING to STARTED (kafka.server.BrokerServer)",
    ),
}


def preceded(lines: tuple[str, ...]) -> Damage:
    def damage(content: bytes) -> bytes:
        time = content[: content.index(b"]") + 1].decode()
        return "".join(f"{time} INFO {line}\n" for line in lines).encode() + content

    return damage


def is_as_before(ended: Ended, before: Ended) -> bool:
    return (ended.code, ended.report["verdict"]) == (before.code, before.report["verdict"])


@pytest.mark.parametrize("kind", FOREIGN)
def test_foreign_lines_end_no_run_and_touch_no_later_log(
    verb: Verb, audited_slice: tuple[Path, Ended], tmp_path: Path, kind: str
) -> None:
    folder = tmp_path / "logs"
    shutil.copytree(SLICE, folder, copy_function=shutil.copyfile)
    damaged(folder / "broker-1" / "logs" / "server.log.gz", preceded(FOREIGN[kind]))
    ended = verb(tmp_path, "audit", folder)
    assert ended.code in (ExitCode.CLEAN, ExitCode.INCONCLUSIVE), ended.err
    assert ended.report["violations"] == []
    assert is_as_before(verb(tmp_path, "audit", SLICE), audited_slice[1])


def test_a_run_that_failed_leaves_a_lake_for_the_next(
    verb: Verb, audited_slice: tuple[Path, Ended], tmp_path: Path
) -> None:
    folder = copy_of(SLICE, tmp_path / "logs")
    damaged(folder / "broker-1" / "logs" / "server.log.gz", preceded(FOREIGN["another cluster and broker"]))
    with mock.patch("highwater.pipelines.gold.gold.write_incidents", side_effect=ValueError("null in a list")):
        assert verb(tmp_path, "audit", folder).code == ExitCode.INTERNAL
    assert is_as_before(verb(tmp_path, "audit", SLICE), audited_slice[1])
