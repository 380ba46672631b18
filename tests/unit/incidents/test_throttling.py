"""A quota incident needs a logged wait, or a quota and a gap that rounding cannot leave."""

from datetime import timedelta
from typing import Any

import duckdb
import pytest

from highwater.pipelines.base.arrow_rows import dicts
from highwater.pipelines.incidents import questions
from highwater.pipelines.incidents.facts import Facts
from highwater.pipelines.incidents.kinds import BY_NAME, KINDS
from tests.unit.incidents.test_questions import START, ask, line

_COLUMNS = (
    "cluster_id varchar, broker_id integer, client_id varchar, replica_id integer, line_time timestamptz, "
    "total_time_ms double, throttle_time_ms double"
)


def throttled(*requests: tuple[float, int, str | None, int | None, float, float]) -> list[dict[str, Any]]:
    """Return the episodes of requests: second, broker, client, follower, total and throttle time, ms."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(f"CREATE TABLE gold_request_phases ({_COLUMNS})")
    for second, broker_id, client_id, replica_id, total_ms, throttle_ms in requests:
        row = ("c", broker_id, client_id, replica_id, START + timedelta(seconds=second), total_ms, throttle_ms)
        connection.execute("INSERT INTO gold_request_phases VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    return dicts(connection.sql(questions.throttled(60)).to_arrow_table())


def test_requests_are_added_up_by_client_until_it_has_caught_up() -> None:
    first, second = throttled(
        *((0, 1, "a", None, 60.2, 50), (20, 2, "a", -1, 900.4, 900), (30, 1, "a", None, 1.3, 0)),
        *((200, 1, "a", None, 9.9, 7), (210, 2, None, None, 1.1, 0)),
    )
    assert (first["requests"], first["total_ms"], first["longest_ms"], first["broker_ids"]) == (2, 950, 900, [1, 2])
    assert second["last_time"] - first["first_time"] == 200_000_000
    assert first["is_logged"]


@pytest.mark.parametrize("client_id", ["bank", None])
def test_a_measured_gap_is_not_a_logged_wait(client_id: str | None) -> None:
    # 0.10 leaves whole milliseconds by rounding; 0.11 to 2.5 measure fractions.
    assert throttled((0, 1, client_id, None, 12, 6), (1, 1, client_id, None, 9, 0)) == []
    assert throttled((0, 1, client_id, None, 12.2, 0.024), (1, 1, client_id, None, 9.3, 3.9)) == []
    (episode,) = throttled((0, 1, client_id, None, 412, 400), (1, 1, client_id, None, 9, 2))
    assert (episode["is_logged"], episode["requests"]) == (False, 1)


def test_a_follower_has_no_client_quota() -> None:
    """Its fetches, and its other requests under the same client id, are exempt."""
    fetches = [(second, 1, "broker-2-fetcher-0", 2, 520.3, 20) for second in range(3)]
    assert throttled(*fetches, (4, 1, "broker-2-fetcher-0", None, 80.4, 70)) == []


def facts(version: str | None, is_logged: bool, limit: str | None = None, quota_line: str = "") -> Facts:
    start_us = int(START.timestamp() * 1e6)
    episode = {"cluster_id": "c", "client_id": "bank", "is_logged": is_logged, "broker_ids": [1, 2], "requests": 4}
    lines = [line(0, quota_line, level="INFO", logger="kafka.server.ClientQuotaManager")] if quota_line else []
    signatures = [signature for kind in KINDS for signature in kind.signatures]
    files = [
        {"cluster_id": "c", "broker_id": broker_id, "first_time": start_us, "kafka_version": version}
        for broker_id in (1, 2)
    ]
    config = {"cluster_id": "c", "broker_id": 2, "key": "quota.consumer.default", "value": limit}
    return Facts(
        files=files,
        configs=[] if limit is None else [config],
        remarks=ask(questions.remarks(signatures), lines),
        throttled=[
            episode | {"first_time": start_us + 5, "last_time": start_us + 6, "total_ms": 80.0, "longest_ms": 40.0}
        ],
    )


@pytest.mark.parametrize(
    ("known", "count"),
    [
        (facts("2.8.2", True), 1),
        (facts(None, True), 1),
        (facts("1.1.1", False), 0),
        (facts("1.1.1", False, str(2**63 - 1)), 0),
        (facts("1.1.1", False, "1048576"), 1),
        (facts("0.10.2.2", False, "1048576"), 1),
        (facts("2.3.1", False, "1048576"), 0),  # the response does not wait since KIP-219
        (facts(None, False, "1048576"), 0),
        (facts("1.1.1", False, quota_line="Changing Produce quota for client-id bank to 1024.0"), 1),
        (facts("1.1.1", False, quota_line="Changing Fetch quota for client-id other to 1024.0"), 0),
        (facts("1.1.1", False, quota_line="Changing Request quota for user alice to 200.0"), 1),
        (facts("1.1.1", False, quota_line="Changing Fetch quota for default client-id to 1024.0"), 1),
    ],
)
def test_a_measured_gap_needs_a_quota(known: Facts, count: int) -> None:
    assert len(list(BY_NAME["clients_throttled"].detect(known))) == count


@pytest.mark.parametrize(
    ("path", "config", "count"),
    [
        ("clients/bank", "Map(producer_byte_rate -> 1024)", 1),
        ("users/alice/clients/bank", "HashMap(consumer_byte_rate -> 1024)", 1),
        ("clients/other", "Map(producer_byte_rate -> 1024)", 0),
        ("clients/bank", "Map()", 0),
        ("brokers/2", "HashMap(follower.replication.throttled.rate -> 1024)", 0),
    ],
)
def test_an_override_by_zookeeper_is_a_quota(path: str, config: str, count: int) -> None:
    text = f"Processing override for entityPath: {path} with config: {config}"
    lines = [line(0, text, level="INFO", logger="kafka.server.DynamicConfigManager")]
    signatures = [signature for kind in KINDS for signature in kind.signatures]
    known = facts("1.1.1", False)
    remarks = ask(questions.remarks(signatures), lines)
    assert (
        len(
            list(
                BY_NAME["clients_throttled"].detect(
                    Facts(files=known.files, remarks=remarks, throttled=known.throttled)
                )
            )
        )
        == count
    )
