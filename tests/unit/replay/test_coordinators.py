"""Coordinators' requests as appends."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.grammars.coordinator_bodies import SHARE_STATE_APIS
from highwater.pipelines.kafka.connections import parse_remote_host
from highwater.pipelines.kafka.context import (
    OFFSETS_PARTITIONS,
    SHARE_STATES_PARTITIONS,
    TRANSACTIONS_PARTITIONS,
    Contexts,
)
from highwater.pipelines.replay import coordinators
from highwater.pipelines.replay.java_hash import partition_of
from highwater.pipelines.report.figures import COORDINATOR_APIS
from highwater.schemas import silver
from highwater.schemas.topics import GROUP_TOPIC, SHARE_TOPIC, TRANSACTION_TOPIC
from tests.unit.replay.rows import batch_of

COLUMNS = (
    *("cluster_id", "api", "remote_time_ms", "error_codes", "group_id", "transactional_id", "records", "assignments"),
    *("verify_only", "partitions"),
)
COUNTS = coordinators.Counts({"few": 4}, {"few": 3}, {"few": 3})


def test_the_report_tells_of_all_apis_whose_appends_are_replayed() -> None:
    appended = {*coordinators.GROUP_APIS, *coordinators._TRANSACTION_APIS, *SHARE_STATE_APIS}
    assert set(COORDINATOR_APIS) == appended | {"WRITE_TXN_MARKERS"}


def records(*rows: dict[str, Any], counts: coordinators.Counts = COUNTS) -> list[tuple[Any, ...]]:
    given_rows = [{"cluster_id": "few", "remote_time_ms": 1.0, "partitions": []} | row for row in rows]
    appended = coordinators.records(batch_of(silver.REQUESTS, COLUMNS, given_rows), counts).to_pylist()
    for row in appended:
        (part,) = row["partitions"]
        assert part["error_code"] == 0
    return [(row["partitions"][0]["topic"], row["partitions"][0]["partition"], row["records"]) for row in appended]


@pytest.mark.parametrize(
    ("row", "written"),
    [
        ({"api": "OFFSET_COMMIT", "records": 2}, 2),
        ({"api": "TXN_OFFSET_COMMIT", "records": 1}, 1),
        ({"api": "OFFSET_COMMIT", "records": 0}, 0),
        ({"api": "OFFSET_COMMIT"}, 0),
        ({"api": "OFFSET_COMMIT", "records": 2, "remote_time_ms": 0.0}, 0),
        ({"api": "OFFSET_COMMIT", "records": 2, "error_codes": []}, 2),
        ({"api": "OFFSET_COMMIT", "records": 2, "error_codes": [0, 27]}, 2),
        ({"api": "OFFSET_COMMIT", "records": 2, "error_codes": [27]}, 0),
        ({"api": "OFFSET_COMMIT", "records": 2, "group_id": None}, 0),
        ({"api": "SYNC_GROUP", "assignments": 5}, 1),
        ({"api": "SYNC_GROUP", "assignments": 0}, 0),
        ({"api": "SYNC_GROUP"}, 0),
        ({"api": "INIT_PRODUCER_ID"}, 1),
        ({"api": "ADD_PARTITIONS_TO_TXN", "verify_only": False}, 1),
        ({"api": "ADD_PARTITIONS_TO_TXN", "verify_only": True}, 0),
        ({"api": "ADD_OFFSETS_TO_TXN", "records": 9}, 1),
        ({"api": "END_TXN"}, 1),
        ({"api": "END_TXN", "transactional_id": None}, 0),
        ({"api": "WRITE_TXN_MARKERS"}, 0),
        ({"api": "METADATA", "records": 2}, 0),
    ],
)
def test_who_waited_and_was_answered_well_has_appended(row: dict[str, Any], written: int):
    is_group = row["api"] in ("OFFSET_COMMIT", "TXN_OFFSET_COMMIT", "SYNC_GROUP")
    # g-rd-2 hashes to -1301112579; of a transaction's requests the group is one that it adds.
    place = (GROUP_TOPIC, 3) if is_group else (TRANSACTION_TOPIC, 1301112579 % 3)
    ids = {"group_id": "g-rd-2" if is_group else "g1", "transactional_id": "tx" if is_group else "g-rd-2"}
    assert records(ids | row) == ([(*place, written)] if written else [])


def test_clusters_have_their_own_counts():
    commit = {"api": "OFFSET_COMMIT", "records": 1, "group_id": "g-rd-2"}
    begin = {"api": "INIT_PRODUCER_ID", "transactional_id": "g-rd-2"}
    of_other = [row | {"cluster_id": "other"} for row in (commit, begin)]
    places = [partition for _, partition, _ in records(commit, *of_other, begin)]
    assert places == [3, 1301112579 % 50, 1301112579 % 50, 1301112579 % 3]
    keys = {OFFSETS_PARTITIONS: "4", TRANSACTIONS_PARTITIONS: "3", SHARE_STATES_PARTITIONS: "3"}
    settings = {("few", 1, key): ((0, count),) for key, count in keys.items()}
    assert coordinators.counts_of(Contexts({}, broker_configs=settings)) == COUNTS


def slow_partition(text: str, count: int) -> int:
    """``s[0]*31^(n-1) + ... + s[n-1]`` over UTF-16 units, as a signed integer of 32 bits (``String.hashCode``)."""
    encoded = text.encode("utf-16-le")
    units = [encoded[at] + 256 * encoded[at + 1] for at in range(0, len(encoded), 2)]
    total = sum(unit * 31 ** (len(units) - 1 - at) for at, unit in enumerate(units))
    code = (total + 2**31) % 2**32 - 2**31
    return 0 if code == -(2**31) else abs(code) % count


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=12), st.sampled_from(["few", "other"]))
def test_the_partition_of_an_id_is_that_of_its_hash(text: str, cluster_id: str):
    count = 4 if cluster_id == "few" else 50
    commit = {"api": "OFFSET_COMMIT", "records": 1, "group_id": text, "cluster_id": cluster_id}
    assert records(commit) == [(GROUP_TOPIC, slow_partition(text, count), 1)]


@pytest.mark.parametrize(
    ("connection", "host"),
    [
        ("127.0.0.1:9092-127.0.0.2:50123-4", "127.0.0.2"),
        ("127.0.0.1:9092-127.0.0.2:50123-4-1", "127.0.0.2"),
        ("10.0.0.1:9092-client-host:50123", "client-host"),
        ("[::1]:9092-0:0:0:0:0:0:0:1:50123-0", "0:0:0:0:0:0:0:1"),
        ("unknown", ""),
        (None, ""),
    ],
)
def test_the_clients_host_stands_in_the_connection(connection: str | None, host: str):
    assert parse_remote_host(connection) == host


def test_states_of_a_share_groups_partitions_go_where_each_of_them_hashes_to():
    """Where the leaders of the three partitions of the topic have answered them (KIP-932)."""
    parts = [
        {"topic_id": "eJexYISJS06pkZhfNxcgVg", "partition": partition, "error_code": code}
        for partition, code in ((0, 0), (1, 0), (2, 56))
    ]
    row = {"cluster_id": "few", "api": "WRITE_SHARE_GROUP_STATE", "remote_time_ms": 1.0, "group_id": "workers"}
    appended = coordinators.records(batch_of(silver.REQUESTS, COLUMNS, [row | {"partitions": parts}]), COUNTS)
    (written,) = appended.column("partitions").to_pylist()
    hashes = [f"workers:eJexYISJS06pkZhfNxcgVg:{partition}" for partition in (0, 1)]
    assert [part["partition"] for part in written] == [partition_of(text, 3) for text in hashes]
    assert {part["topic"] for part in written} == {SHARE_TOPIC}
