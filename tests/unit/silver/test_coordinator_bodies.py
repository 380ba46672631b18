"""What requests to coordinators say: whose they are, and what they had written."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from highwater.pipelines.grammars.record import TYPED
from highwater.pipelines.grammars.request_line import API_NAMES
from highwater.pipelines.grammars.request_log import parse_request
from tests.reading import columns_of
from tests.unit.silver import coordinator_lines as json_lines
from tests.unit.silver import request_text_lines as text_lines
from tests.unit.silver.test_request_log import only, record
from tests.unit.silver.test_request_text import END_011, END_10, row

NAMES = ("group_id", "transactional_id", "producer_id", "producer_epoch", "committed", "verify_only", "records")
NAMES += ("assignments",)


def said(found: dict[str, Any]) -> dict[str, Any]:
    """The columns of coordinators' requests that are not null."""
    return {name: found[name] for name in NAMES if found.get(name) is not None}


def of(line: str) -> dict[str, Any]:
    return said(only(line, "requests"))


def with_bodies(line: str, api: str, version: int, request: Any, response: Any) -> dict[str, Any]:
    """The row of a line in JSON form with other bodies."""
    read = record(line)
    changed = orjson.loads(read.message.removeprefix("Completed request:"))
    number = 68 if api == "CONSUMER_GROUP_HEARTBEAT" else API_NAMES.index(api)
    changed["requestHeader"] |= {"requestApiKey": number, "requestApiKeyName": api, "requestApiVersion": version}
    changed |= {"request": request, "response": response}
    result = parse_request(read._replace(message="Completed request:" + orjson.dumps(changed).decode()))
    assert result.outcome == TYPED, result.problem
    return columns_of(result.facts[0])


TRANSACTION_39 = {"transactional_id": "tx-kraft39-faults", "producer_id": 0}
TRANSACTION_27 = {"transactional_id": "tx-zk27-faults", "producer_id": 2000}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (json_lines.OFFSET_COMMIT_28, {"group_id": "g3", "records": 0}),
        (json_lines.OFFSET_COMMIT_39, {"group_id": "g4", "records": 2}),
        (json_lines.OFFSET_COMMIT_43, {"group_id": "g4", "records": 2}),
        (json_lines.JOIN_GROUP_39, {"group_id": "g3"}),
        (json_lines.HEARTBEAT_39, {"group_id": "g2"}),
        (json_lines.LEAVE_GROUP_39, {"group_id": "g2"}),
        (json_lines.SYNC_GROUP_39, {"group_id": "g3", "assignments": 1}),
        (json_lines.INIT_PRODUCER_ID_39_FAILED, {"transactional_id": "tx-kraft39-faults"}),
        (json_lines.INIT_PRODUCER_ID_39_DONE, {**TRANSACTION_39, "producer_epoch": 1}),
        (json_lines.ADD_PARTITIONS_TO_TXN_V0_39, {**TRANSACTION_39, "producer_epoch": 0, "verify_only": False}),
        (json_lines.ADD_PARTITIONS_TO_TXN_V5_39, {**TRANSACTION_39, "producer_epoch": 0, "verify_only": True}),
        (json_lines.END_TXN_39_COMMIT, {**TRANSACTION_39, "producer_epoch": 0, "committed": True}),
        (json_lines.END_TXN_39_ABORT, {**TRANSACTION_39, "producer_epoch": 0, "committed": False}),
        (text_lines.OFFSET_COMMIT_27, {"group_id": "g4", "records": 0}),
        (text_lines.OFFSET_COMMIT_MANY_27, {"group_id": "g1", "records": 3}),
        (text_lines.JOIN_GROUP_DONE_27, {"group_id": "g3"}),
        (text_lines.SYNC_GROUP_27, {"group_id": "g3", "assignments": 1}),
        (text_lines.HEARTBEAT_27, {"group_id": "g1"}),
        (text_lines.LEAVE_GROUP_27, {"group_id": "g2"}),
        (text_lines.INIT_PRODUCER_ID_27, {"transactional_id": "tx-zk27-faults"}),
        (text_lines.INIT_PRODUCER_ID_DONE_27, {**TRANSACTION_27, "producer_epoch": 1}),
        (text_lines.ADD_PARTITIONS_TO_TXN_27, {**TRANSACTION_27, "producer_epoch": 0, "verify_only": False}),
        (text_lines.END_TXN_27, {**TRANSACTION_27, "producer_epoch": 0, "committed": True}),
        (text_lines.METADATA_27, {}),
    ],
)
def test_real_lines(line: str, expected: dict[str, Any]):
    assert of(line) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (json_lines.ADD_PARTITIONS_TO_TXN_V0_28, ("payments", 0, 1000)),
        (json_lines.ADD_PARTITIONS_TO_TXN_V0_43, ("payments", 51, 0)),
        (json_lines.ADD_PARTITIONS_TO_TXN_V5_43, ("payments", 0, 0)),
        (text_lines.ADD_PARTITIONS_TO_TXN_27, ("payments", 51, 2000)),
    ],
)
def test_partitions_added_to_a_transaction(line: str, expected: tuple[str, int, int]):
    found = only(line, "requests")
    (part,) = found["partitions"]
    assert (part["topic"], part["error_code"], part["producer_id"]) == expected
    assert found["error_codes"] == sorted({0, expected[1]} if found["api_version"] >= 4 else {expected[1]})
    assert found["body"] is None


def test_several_transactions_in_one_request():
    def transaction(name: str, producer_id: int, verify_only: bool) -> Any:
        topics = [{"name": "t", "partitions": [producer_id]}]
        ids = {"transactionalId": name, "producerId": producer_id, "producerEpoch": 1}
        return {**ids, "verifyOnly": verify_only, "topics": topics}

    def answer(name: str, partition: int, code: int) -> Any:
        partitions = [{"partitionIndex": partition, "partitionErrorCode": code}]
        return {"transactionalId": name, "topicResults": [{"name": "t", "resultsByPartition": partitions}]}

    line = json_lines.ADD_PARTITIONS_TO_TXN_V5_39
    request = {"transactions": [transaction("a", 1, True), transaction("b", 2, False)]}
    response = {"throttleTimeMs": 0, "errorCode": 0, "resultsByTransaction": [answer("b", 2, 48), answer("a", 1, 0)]}
    found = with_bodies(line, "ADD_PARTITIONS_TO_TXN", 5, request, response)
    assert said(found) == {"verify_only": False}
    assert [(part["producer_id"], part["error_code"]) for part in found["partitions"]] == [(1, 0), (2, 48)]
    assert found["error_codes"] == [0, 48]
    response = {"throttleTimeMs": 0, "errorCode": 31, "resultsByTransaction": []}
    refused = with_bodies(line, "ADD_PARTITIONS_TO_TXN", 5, request, response)
    assert [part["error_code"] for part in refused["partitions"]] == [31, 31]


def test_requests_that_no_corpus_has_in_json():
    line = json_lines.HEARTBEAT_39
    ids = {"transactionalId": "tx", "producerId": 5, "producerEpoch": 2}
    expected = {"transactional_id": "tx", "producer_id": 5, "producer_epoch": 2, "group_id": "g"}
    offsets = [
        {"name": "t", "partitions": [{"partitionIndex": 0, "errorCode": 0}, {"partitionIndex": 1, "errorCode": 3}]}
    ]
    well = {"throttleTimeMs": 0, "errorCode": 0}
    assert said(with_bodies(line, "ADD_OFFSETS_TO_TXN", 3, {**ids, "groupId": "g"}, well)) == expected
    request = {**ids, "groupId": "g", "generationId": 1, "memberId": "m", "groupInstanceId": None, "topics": []}
    found = with_bodies(line, "TXN_OFFSET_COMMIT", 3, request, {"throttleTimeMs": 0, "topics": offsets})
    assert said(found) == {**expected, "records": 1}
    by_id = [{"topicId": "pYw1lI-pSgG8EvTmDLoXTg", "partitions": offsets[0]["partitions"]}]
    asked = [{"committedOffset": 4, "committedLeaderEpoch": -1, "committedMetadata": ""} | {"partitionIndex": 0}]
    request["topics"] = [{"topicId": by_id[0]["topicId"], "partitions": asked}]
    request["generationIdOrMemberEpoch"] = request.pop("generationId")
    found = with_bodies(line, "TXN_OFFSET_COMMIT", 6, request, {"throttleTimeMs": 0, "topics": by_id})
    assert said(found) == {**expected, "records": 1}, "KIP-1319, 4.4"
    nothing = ("instanceId", "rackId", "subscribedTopicNames", "serverAssignor", "topicPartitions")
    request = {"groupId": "g", "memberId": "m", "memberEpoch": 1, "rebalanceTimeoutMs": -1} | dict.fromkeys(nothing)
    answer = {"memberId": "m", "memberEpoch": 1, "heartbeatIntervalMs": 5, "assignment": None, "errorMessage": None}
    found = with_bodies(line, "CONSUMER_GROUP_HEARTBEAT", 0, request, well | answer)
    assert said(found) == {"group_id": "g"}
    found = with_bodies(line, "OFFSET_DELETE", 0, {"groupId": "g", "topics": []}, {**well, "topics": []})
    assert said(found) == {"group_id": "g"}


def text(api: str, version: int, request: str, response: str) -> dict[str, Any]:
    header = f"RequestHeader(apiKey={api}, apiVersion={version}, clientId=c, correlationId=1)"
    return row(f"{header} -- {request},response:{response}{END_10}")


IDS = "transactional_id=tx,producer_id=5,producer_epoch=2"
EXPECTED = {"transactional_id": "tx", "producer_id": 5, "producer_epoch": 2}


@pytest.mark.parametrize(
    ("api", "version", "request_text", "response", "expected"),
    [
        (
            "OFFSET_COMMIT",
            3,
            "{group_id=g,generation_id=1,member_id=m,retention_time=-1,topics=[{topic=t,partitions=["
            '{partition=0,offset=5,metadata={"host":"a,b=c"}},{partition=1,offset=5,metadata=}]}]}',
            "{throttle_time_ms=0,responses=[{topic=t,partition_responses=[{partition=0,error_code=0},"
            "{partition=1,error_code=12}]}]}",
            {"group_id": "g", "records": 1},
        ),
        ("OFFSET_COMMIT", 0, "{group_id=g,topics=[]}", "{responses=[]}", {"group_id": "g", "records": 0}),
        (
            "TXN_OFFSET_COMMIT",
            0,
            "{transactional_id=tx,consumer_group_id=g,producer_id=5,producer_epoch=2,topics=[{topic=t,partitions=["
            "{partition=0,offset=5,metadata=}]}]}",
            "{throttle_time_ms=0,topics=[{topic=t,partitions=[{partition=0,error_code=0}]}]}",
            {**EXPECTED, "group_id": "g", "records": 1},
        ),
        (
            "JOIN_GROUP",
            0,
            "{group_id=g,session_timeout=1,member_id=,protocol_type=consumer,group_protocols=[{protocol_name=range,"
            "protocol_metadata=java.nio.HeapByteBuffer[pos=0 lim=30 cap=30]}]}",
            "{error_code=0,generation_id=1,group_protocol=range,leader_id=m,member_id=m,members=[]}",
            {"group_id": "g"},
        ),
        (
            "SYNC_GROUP",
            1,
            "{group_id=g,generation_id=1,member_id=m,group_assignment=[{member_id=m,member_assignment="
            "java.nio.HeapByteBuffer[pos=0 lim=1 cap=1]},{member_id=n,member_assignment=java.nio.HeapByteBuffer"
            "[pos=0 lim=1 cap=1]}]}",
            "{throttle_time_ms=0,error_code=0,member_assignment=java.nio.HeapByteBuffer[pos=0 lim=1 cap=1]}",
            {"group_id": "g", "assignments": 2},
        ),
        (
            "SYNC_GROUP",
            3,
            "{group_id=g,generation_id=1,member_id=m,group_instance_id=null,assignments=[]}",
            "{throttle_time_ms=0,error_code=0,assignment=java.nio.HeapByteBuffer[pos=0 lim=1 cap=1]}",
            {"group_id": "g", "assignments": 0},
        ),
        (
            "LEAVE_GROUP",
            4,
            "{group_id=g,members=[{member_id=m,group_instance_id=null,_tagged_fields={}}],_tagged_fields={}}",
            "{throttle_time_ms=0,error_code=0,members=[],_tagged_fields={}}",
            {"group_id": "g"},
        ),
        (
            "OFFSET_DELETE",
            0,
            "{group_id=g,topics=[{name=t,partitions=[{partition_index=0}]}]}",
            "{error_code=0,throttle_time_ms=0,topics=[]}",
            {"group_id": "g"},
        ),
        (
            "INIT_PRODUCER_ID",
            0,
            "{transactional_id=null,transaction_timeout_ms=60000}",
            "{throttle_time_ms=0,error_code=0,producer_id=7,producer_epoch=0}",
            {"producer_id": 7, "producer_epoch": 0},
        ),
        (
            "ADD_PARTITIONS_TO_TXN",
            0,
            f"{{{IDS},topics=[{{topic=t,partitions=[0,1]}}]}}",
            "{throttle_time_ms=0,errors=[{topic=t,partition_errors=[{partition=0,error_code=0},"
            "{partition=1,error_code=3}]}]}",
            {**EXPECTED, "verify_only": False},
        ),
        (
            "ADD_OFFSETS_TO_TXN",
            0,
            f"{{{IDS},consumer_group_id=g}}",
            "{throttle_time_ms=0,error_code=0}",
            {**EXPECTED, "group_id": "g"},
        ),
        (
            "END_TXN",
            0,
            f"{{{IDS},transaction_result=false}}",
            "{throttle_time_ms=0,error_code=0}",
            {**EXPECTED, "committed": False},
        ),
    ],
)
def test_bodies_as_versions_before_24_print_them(
    api: str, version: int, request_text: str, response: str, expected: dict[str, Any]
):
    found = text(api, version, request_text, response)
    assert said(found) == expected
    if api == "ADD_PARTITIONS_TO_TXN":
        assert [(part["partition"], part["error_code"]) for part in found["partitions"]] == [(0, 0), (1, 3)]


def test_nothing_is_known_of_what_was_committed_where_the_log_has_no_response():
    header = "{api_key=8,api_version=0,correlation_id=1,client_id=c}"
    found = row(f"{header} -- {{group_id=g,topics=[{{topic=t,partitions=[]}}]}}{END_011}")
    assert said(found) == {"group_id": "g"}
    assert found["error_codes"] is None


PARTITIONS = [
    (
        "WRITE_TXN_MARKERS",
        0,
        "{transaction_markers=[{producer_id=5,producer_epoch=2,transaction_result=true,topics=["
        "{topic=t,partitions=[0,1]}],coordinator_epoch=1}]}",
        "{transaction_markers=[{producer_id=5,topics=[{topic=t,partitions=[{partition=0,error_code=0},"
        "{partition=1,error_code=6}]}]}]}",
        [("t", 0, 0), ("t", 1, 6)],
    ),
    (
        "OFFSET_FOR_LEADER_EPOCH",
        0,
        "{topics=[{topic=t,partitions=[{partition_id=0,leader_epoch=1}]}]}",
        "{topics=[{topic=t,partitions=[{error_code=0,partition_id=0,end_offset=9}]}]}",
        [("t", 0, 0)],
    ),
    (
        "LEADER_AND_ISR",
        0,
        "{controller_id=1,controller_epoch=2,partition_states=[{topic=t,partition=0,controller_epoch=1,leader=2,"
        "leader_epoch=6,isr=[2],zk_version=10,replicas=[1,2,3]}],live_leaders=[{id=2,host=127.0.0.1,port=19094}]}",
        "{error_code=0,partitions=[{topic=t,partition=0,error_code=11}]}",
        [("t", 0, 11)],
    ),
    (
        "STOP_REPLICA",
        0,
        "{controller_id=1,controller_epoch=2,delete_partitions=false,partitions=[{topic=t,partition=0}]}",
        "{error_code=0,partitions=[{topic=t,partition=0,error_code=0}]}",
        [("t", 0, 0)],
    ),
    (
        "STOP_REPLICA",
        1,
        "{controller_id=1,controller_epoch=2,broker_epoch=3,delete_partitions=false,partitions=[{topic=t,"
        "partition_ids=[0,3]}]}",
        "{error_code=0,partitions=[{topic=t,partition=3,error_code=7},{topic=t,partition=0,error_code=0}]}",
        [("t", 0, 0), ("t", 3, 7)],
    ),
    (
        "STOP_REPLICA",
        2,
        "{controller_id=1,controller_epoch=2,broker_epoch=3,delete_partitions=false,topics=[{name=t,"
        "partition_indexes=[0],_tagged_fields={}}],_tagged_fields={}}",
        "{error_code=0,partition_errors=[{topic_name=t,partition_index=0,error_code=0,_tagged_fields={}}],"
        "_tagged_fields={}}",
        [("t", 0, 0)],
    ),
]


@pytest.mark.parametrize(("api", "version", "request_text", "response", "expected"), PARTITIONS)
def test_partitions_as_versions_before_24_print_them(
    api: str, version: int, request_text: str, response: str, expected: list[tuple[str, int, int | None]]
):
    found = text(api, version, request_text, response)
    assert [(part["topic"], part["partition"], part["error_code"]) for part in found["partitions"]] == expected


def test_leader_and_isr_of_27_names_an_error_per_partition():
    found = only(text_lines.LEADER_AND_ISR_27, "requests")
    assert all(part["error_code"] == 0 and part["isr"] and part["leader_epoch"] >= 0 for part in found["partitions"])
    (part,) = only(text_lines.LEADER_AND_ISR_010, "requests")["partitions"]
    assert (part["topic"], part["isr"], part["leader_epoch"], part["partition_epoch"]) == ("ledger", [2], 6, 10)
    assert part["error_code"] is None


def test_what_the_other_text_lines_say():
    (part,) = only(text_lines.ALTER_ISR_DONE_27, "requests")["partitions"]
    assert (part["isr"], part["error_code"], part["partition_epoch"]) == ([2], 74, 6)
    (part,) = only(text_lines.OFFSET_FOR_LEADER_EPOCH_27, "requests")["partitions"]
    assert (part["leader_epoch"], part["end_offset"], part["error_code"]) == (1, 724, 0)
    (part,) = only(text_lines.WRITE_TXN_MARKERS_27, "requests")["partitions"]
    assert (part["topic"], part["committed"], part["error_code"], part["producer_id"]) == ("payments", True, 0, 2000)
    (part,) = only(text_lines.STOP_REPLICA_010, "requests")["partitions"]
    assert (part["topic"], part["error_code"]) == ("ledger", None)
    assert {part["error_code"] for part in only(text_lines.STOP_REPLICA_27, "requests")["partitions"]} == {74}
    body = only(text_lines.LIST_OFFSETS_27, "requests")["body"]
    assert body.startswith("{replica_id=-1,")
    assert body.endswith("leader_epoch=0}]}]}")
