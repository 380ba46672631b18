"""Replicas that are moved between directories of a broker, as lines of 1.1 to the newest tell it."""

from __future__ import annotations

import pytest

from tests.unit.silver.lines import facts, parse

MANAGER, MOVES = "kafka.log.LogManager", "kafka.server.ReplicaAlterLogDirsManager"
LOG = "topicId=oD6ZQYigQMefvqWKmL2cCw, topic=orders, partition=0, highWatermark=347, lastStableOffset=347, "
LOG += "logStartOffset=0, logEndOffset=347)"
FOLDER = "/k/d2/orders-0.3fd703df028a47ac986705c3eb0c6c3e-future"


@pytest.mark.parametrize(
    ("logger", "line", "event", "log_dir"),
    [
        (MANAGER, f"Created log for partition orders-0 in {FOLDER} with properties {{}}", "created", "/k/d2"),
        (
            MANAGER,
            f"Completed load of Log(dir={FOLDER}, {LOG} with 1 segments, local-log-start-offset 0 and log-end-offset "
            "347 in 9ms (1/9 completed in /k/d2)",
            "loaded",
            "/k/d2",
        ),
        (
            MOVES,
            "[ReplicaAlterLogDirsManager on broker 1] Added log dir fetcher for partitions with initial offsets "
            "Map(orders-0 -> InitialFetchState(Some(oD6ZQYigQMefvqWKmL2cCw),BrokerEndPoint(id=1, host=localhost:-1),0,"
            "0))",
            "copying",
            None,
        ),
        (
            MOVES,  # 2.3, from source
            "[ReplicaAlterLogDirsManager on broker 1] Added fetcher to broker BrokerEndPoint(id=1, host=localhost:-1) "
            "for partitions Map(orders-0 -> (offset=0, leaderEpoch=0))",
            "copying",
            None,
        ),
        (
            MOVES,  # 1.1, from source
            "[ReplicaAlterLogDirsManager on broker 1] Added fetcher for partitions List([orders-0, initOffset 0 to "
            "broker BrokerEndPoint(1,localhost,-1)] )",
            "copying",
            None,
        ),
        (
            MANAGER,
            f"Attempting to replace current log Log(dir=/k/d1/orders-0, {LOG} with Log(dir={FOLDER}, {LOG} for "
            "orders-0",
            "promoted",
            "/k/d2",
        ),
        (
            MANAGER,  # up to 2.3, from source
            f"Attempting to replace current log Log(/k/d1/orders-0) with Log({FOLDER}) for orders-0",
            "promoted",
            "/k/d2",
        ),
        (
            MANAGER,  # 3.7 and later, from source
            f"Attempting to recover abandoned future log for orders-0 at Log(dir={FOLDER}, {LOG} and removing "
            f"Log(dir=/k/d1/orders-0, {LOG}",
            "promoted",
            "/k/d2",
        ),
    ],
)
def test_a_move_between_directories(logger: str, line: str, event: str, log_dir: str | None) -> None:
    where = {} if log_dir is None else {"log_dir": log_dir}
    moves = [row for table, row in facts(logger, line) if table == "future_logs"]
    assert moves == [{"topic": "orders", "partition": 0, "event": event, **where}]


def test_a_future_log_that_is_not_there_replaces_nothing() -> None:
    line = f"Attempting to replace current log Log(dir=/k/d1/orders-0, {LOG} with null for orders-0"
    assert parse(MANAGER, line).outcome == "known"


def test_a_replica_s_own_log_is_no_future_log() -> None:
    line = "Created log for partition orders-0 in /k/d1/orders-0 with properties {}"
    assert all(table != "future_logs" for table, _ in facts(MANAGER, line))


@pytest.mark.parametrize(
    ("logger", "line"),
    [
        (
            "kafka.server.LocalLeaderEndPoint",
            "Beginning/resuming copy of partition orders-0 from offset 0. Including this partition, there are 1 "
            "remaining partitions to copy by this thread.",
        ),
        (
            "kafka.controller.KafkaController",  # from source
            "[Controller id=3] Read current producerId block ProducerIdsBlock(assignedBrokerId=2, firstProducerId=0, "
            "size=1000), Zk path version 1",
        ),
    ],
)
def test_lines_of_copies_and_blocks_are_known(logger: str, line: str) -> None:
    assert parse(logger, line).outcome == "known"
