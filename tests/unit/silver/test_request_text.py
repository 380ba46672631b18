"""Completion lines in text form: real ones of 2.7.2 and 0.10.2.2, and, from their source, those of versions between."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.grammars.record import TYPED, UNPARSED, LogRecord, Parsed
from highwater.pipelines.grammars.request_log import parse_request
from highwater.schemas.silver import BY_NAME, SOURCE_NAMES
from tests.reading import columns_of
from tests.unit.silver import request_text_lines as lines
from tests.unit.silver.test_request_log import only, parsed, record

REAL = {name: line for name, line in vars(lines).items() if name.isupper()}

#: Ends of lines: 0.8.2, 0.9, 0.10.2, 0.11 (of a broker whose locale has decimal commas), 1.0.
END_08 = (
    " from client /10.0.0.7:4711;totalTime:9,requestQueueTime:1,localTime:3,remoteTime:4,responseQueueTime:0,sendTime:1"
)
END_09 = (
    " from connection 10.0.0.1:9092-10.0.0.7:4711;totalTime:12,requestQueueTime:1,localTime:3,remoteTime:4,"
    "responseQueueTime:0,sendTime:1,securityProtocol:SSL,principal:User:CN=kafka,OU=Ops, O=Acme"
)
END_010 = END_09 + ",listener:INTERNAL"
END_011 = (
    " from connection 10.0.0.1:9092-10.0.0.7:4711-0;totalTime:12,500000,requestQueueTime:1,000000,localTime:3,000000,"
    "remoteTime:4,000000,throttleTime:2,250000,responseQueueTime:0,000000,sendTime:1,000000,"
    "securityProtocol:PLAINTEXT,principal:User:ANONYMOUS,listener:PLAINTEXT"
)
END_10 = (
    " from connection 10.0.0.1:9092-10.0.0.7:4711-0;totalTime:12.5,requestQueueTime:1.0,localTime:3.0,remoteTime:4.0,"
    "throttleTime:2.25,responseQueueTime:1.0E-3,sendTime:1.0,securityProtocol:PLAINTEXT,principal:User:ANONYMOUS,"
    "listener:PLAINTEXT,temporaryMemoryBytes:120,messageConversionsTime:0.5"
)


def parse(text: str) -> Parsed:
    return parse_request(
        LogRecord("kafka-request", 10**15, "DEBUG", "kafka.request.logger", "Completed request:" + text)
    )


def row(text: str, table: str = "requests") -> dict[str, Any]:
    result = parse(text)
    assert result.outcome == TYPED, result
    rows = [columns_of(fact) for fact in result.facts if fact.table == table]
    assert len(rows) == 1
    return rows[0]


def body(api: str, version: int, request: str, response: str, table: str = "requests") -> dict[str, Any]:
    """The row of a line of 1.0 to 2.4."""
    header = f"RequestHeader(apiKey={api}, apiVersion={version}, clientId=c, correlationId=1)"
    return row(f"{header} -- {request},response:{response}{END_10}", table)


@pytest.mark.parametrize("name", REAL)
def test_a_real_line_has_columns_of_its_table_only_and_none_required_is_missing(name: str):
    result = parsed(REAL[name])
    assert (result.outcome, result.reason) == (TYPED, None)
    for fact in result.facts:
        declared = [column for column in BY_NAME[fact.table].columns if column.name not in SOURCE_NAMES]
        assert columns_of(fact).keys() <= {column.name for column in declared}
        needed = {column.name for column in declared if not column.nullable} - {"topic"}
        assert all(columns_of(fact).get(column) is not None for column in needed)


def test_the_header_of_27():
    found = only(lines.PRODUCE_27, "produce_requests")
    assert (found["api"], found["api_version"], found["correlation_id"], found["client_id"]) == ("PRODUCE", 8, 7, "p4")
    assert (found["connection"], found["listener"]) == ("127.0.0.1:19093-127.0.0.1:59108-4", "PLAINTEXT")
    assert found["principal"] == "User:ANONYMOUS"
    assert (found["total_time_ms"], found["request_queue_time_ms"], found["send_time_ms"]) == (5.16, 3.17, 0.52)
    assert found["arrival_time"] == record(lines.PRODUCE_27).time_us - 5_160


def test_produce_of_27():
    found = only(lines.PRODUCE_27, "produce_requests")
    assert (found["acks"], found["timeout_ms"], found["transactional_id"]) == (1, 5000, None)
    assert found["partitions"] == [
        {
            "topic": "clicks",
            "partition": 2,
            "size_bytes": 109,
            "error_code": 0,
            "base_offset": 7,
            "log_append_time_ms": -1,
            "log_start_offset": 0,
        }
    ]


def test_produce_of_27_that_was_refused():
    (part,) = only(lines.PRODUCE_REFUSED_27, "produce_requests")["partitions"]
    assert (part["error_code"], part["base_offset"], part["size_bytes"]) == (19, -1, 847)


def test_produce_of_010_has_no_answer_and_its_throttle_is_what_the_times_leave():
    found = only(lines.PRODUCE_010, "produce_requests")
    (part,) = found["partitions"]
    assert (part["topic"], part["partition"], part["size_bytes"]) == ("ledger", 0, 77)
    assert (part["error_code"], part["base_offset"], found["api_version"]) == (None, None, 2)
    assert found["throttle_time_ms"] == 1.0


def test_fetch_of_27_with_records_from_a_file_and_none():
    found = only(lines.FETCH_BOTH_27, "fetch_requests")
    assert (found["max_wait_ms"], found["min_bytes"], found["error_code"]) == (500, 1, 0)
    assert found["session_id"] == found["response_session_id"] > 0
    assert all(part["fetch_offset"] >= 0 and part["max_bytes"] == 1_048_576 for part in found["partitions"])
    sizes = sorted(part["size_bytes"] for part in found["responses"])
    assert sizes[0] == 0
    assert sizes[-1] > 0
    assert all(part["high_watermark"] >= 0 and part["error_code"] == 0 for part in found["responses"])


def test_fetch_of_27_forgets_partitions():
    found = only(lines.FETCH_ERROR_27, "fetch_requests")
    assert found["forgotten"] == [{"topic": "__consumer_offsets", "topic_id": None, "partition": 2}]
    (answer,) = [columns_of(fact) for fact in parsed(lines.FETCH_ERROR_27).facts if fact.table == "replica_fetches"]
    assert (answer["topic"], answer["partition"], answer["response_error_code"]) == ("payments", 0, 74)
    assert answer.get("fetch_offset") is None


def test_fetch_of_11_forgets_partitions_under_a_misspelt_name():
    found = only(lines.FETCH_11, "fetch_requests")
    assert found["forgotten"] == [{"topic": "orders", "topic_id": None, "partition": index} for index in (0, 3)]
    assert (found["session_epoch"], found["response_session_id"], found["responses"]) == (1, 0, [])


def test_fetch_of_010_tells_offsets_and_nothing_of_the_answer():
    result = parsed(lines.FETCH_MANY_010)
    fetch, *positions = [columns_of(fact) for fact in result.facts]
    assert (fetch["error_code"], fetch["responses"], fetch["session_id"]) == (None, [], None)
    assert len(positions) == len(fetch["partitions"]) > 1
    assert all(position["response_error_code"] is None for position in positions)
    assert all(position["fetch_offset"] >= 0 and position["leader_epoch"] is None for position in positions)


def test_diverging_epochs_are_a_tagged_field():
    request = "{replica_id=2,max_wait_ms=500,min_bytes=1,max_bytes=9,isolation_level=0,session_id=0,session_epoch=0,"
    request += "topics=[],forgotten_topics_data=[],rack_id=,_tagged_fields={}}"
    response = "{throttle_time_ms=0,error_code=0,session_id=0,responses=[{topic=t,partition_responses=[{partition=1,"
    response += "error_code=0,high_watermark=5,last_stable_offset=5,log_start_offset=0,aborted_transactions=null,"
    response += "preferred_read_replica=-1,record_set=MemoryRecords(size=0, buffer=java.nio.HeapByteBuffer[pos=0 lim=0 "
    response += "cap=0]),_tagged_fields={0={epoch=3,end_offset=120,_tagged_fields={}}, 1={leader_id=1,leader_epoch=4,"
    response += "_tagged_fields={}}}}],_tagged_fields={}}],_tagged_fields={}}"
    (answer,) = body("FETCH", 12, request, response, "fetch_requests")["responses"]
    assert (answer["diverging_epoch"], answer["diverging_end_offset"]) == (3, 120)


def test_fetch_of_20_names_its_fields_otherwise():
    request = "{replica_id=-1,max_wait_time=500,min_bytes=1,max_bytes=9,isolation_level=1,session_id=7,epoch=3,topics=["
    request += "{topic=t,partitions=[{partition=0,fetch_offset=10,log_start_offset=-1,max_bytes=100}]}],"
    request += "forgotten_topics_data=[]}"
    answer = (
        "{{partition_header={{partition={},error_code=0,high_watermark=12,last_stable_offset=11,log_start_offset=0,"
    )
    answer += "aborted_transactions=[{{producer_id=5,first_offset=3}}]}},record_set={}}}"
    records = {
        "FileRecords(file= /data/t-0/00000000000000000000.log, start=100, end=361)": 261,
        "[]": 0,
        "[(record=DefaultRecord(offset=1, timestamp=2, key=3 bytes, value=4 bytes))]": None,
        "org.apache.kafka.common.record.FileRecords@1f2e3d": None,
        "null": None,
        "LazyDownConversionRecords(size=80, underlying=FileRecords(size=90, file=/d/0.log, start=0, end=90), "
        "toMagic=1, firstOffset=7)": 80,
    }
    answers = ",".join(answer.format(number, printed) for number, printed in enumerate(records))
    response = (
        f"{{throttle_time_ms=0,error_code=0,session_id=7,responses=[{{topic=t,partition_responses=[{answers}]}}]}}"
    )
    found = body("FETCH", 8, request, response, "fetch_requests")
    assert (found["session_epoch"], found["max_wait_ms"]) == (3, 500)
    assert found["partitions"][0]["max_bytes"] == 100
    assert [part["size_bytes"] for part in found["responses"]] == list(records.values())
    assert {part["last_stable_offset"] for part in found["responses"]} == {11}


def test_produce_at_debug_has_its_partitions_from_the_response():
    response = "{responses=[{topic=t-1,partition_responses=[{partition=0,error_code=0,base_offset=7},"
    response += "{partition=3,error_code=6,base_offset=-1}]}],throttle_time_ms=0}"
    parts = body("PRODUCE", 1, "{acks=-1,timeout=30000,numPartitions=2}", response, "produce_requests")["partitions"]
    assert [(part["topic"], part["partition"], part["size_bytes"], part["error_code"]) for part in parts] == [
        ("t-1", 0, None, 0),
        ("t-1", 3, None, 6),
    ]
    unanswered = body("PRODUCE", 1, "{acks=0,timeout=30000,numPartitions=2}", "", "produce_requests")
    assert (unanswered["acks"], unanswered["partitions"]) == (0, [])


def test_produce_without_an_answer_keeps_its_sizes():
    found = body("PRODUCE", 8, "{acks=0,timeout=1,partitionSizes=[a-b-0=7,c.d-12=8]}", "", "produce_requests")
    parts = [(part["topic"], part["partition"], part["size_bytes"], part["error_code"]) for part in found["partitions"]]
    assert parts == [("a-b", 0, 7, None), ("c.d", 12, 8, None)]


def test_produce_whose_records_were_refused_one_by_one():
    response = "{responses=[{topic=t,partition_responses=[{partition=0,error_code=32,base_offset=-1,log_append_time=-1,"
    response += (
        "log_start_offset=0,record_errors=[{batch_index=0,batch_index_error_message=Timestamp 1 is out of range, "
    )
    response += "it should be within [2, 3]}],error_message=One or more records have been rejected due to invalid "
    response += "timestamp}]}],throttle_time_ms=0}"
    (part,) = body("PRODUCE", 8, "{acks=1,timeout=1,partitionSizes=[t-0=7]}", response, "produce_requests")[
        "partitions"
    ]
    assert (part["error_code"], part["size_bytes"], part["log_start_offset"]) == (32, 7, 0)


def test_produce_of_09_is_a_struct_with_buffers():
    text = "{api_key=0,api_version=1,correlation_id=9,client_id=p} -- {acks=1,timeout=30000,topic_data=[{topic=t,data=["
    text += "{partition=0,record_set=java.nio.HeapByteBuffer[pos=0 lim=123 cap=123]}]}]}" + END_09
    found = row(text, "produce_requests")
    assert (found["principal"], found["listener"]) == ("User:CN=kafka,OU=Ops, O=Acme", None)
    assert (found["throttle_time_ms"], found["timeout_ms"]) == (3.0, 30_000)
    assert found["partitions"][0]["size_bytes"] == 123


def test_011_has_a_struct_for_a_header_and_times_in_its_own_format():
    text = "{api_key=12,api_version=1,correlation_id=9,client_id=c} -- "
    found = row(text + "{group_id=g,group_generation_id=3,member_id=m}" + END_011)
    assert (found["api"], found["group_id"], found["error_codes"]) == ("HEARTBEAT", "g", None)
    assert (found["total_time_ms"], found["throttle_time_ms"]) == (12.5, 2.25)


def test_listener_and_times_of_10():
    found = body("HEARTBEAT", 0, "{group_id=g,group_generation_id=3,member_id=m}", "{error_code=27}")
    assert (found["listener"], found["response_queue_time_ms"], found["error_codes"]) == ("PLAINTEXT", 0.001, [27])


DESCRIBED = "Name: FetchRequest; Version: {}; CorrelationId: 5; ClientId: c; x; ReplicaId: 2; MaxWait: 500 ms; "
DESCRIBED += "MinBytes: 1 bytes"


@pytest.mark.parametrize(
    ("version", "rest", "end"),
    [
        (0, "; RequestInfo: [t,0] -> PartitionFetchInfo(7,1048576),[t.u,1] -> PartitionFetchInfo(8,1048576)", END_08),
        (
            3,
            "; MaxBytes:9 bytes; RequestInfo: ([t,0],PartitionFetchInfo(7,1)),([t.u,1],PartitionFetchInfo(8,1))",
            END_09,
        ),
    ],
)
def test_fetch_as_a_class_describes_it(version: int, rest: str, end: str):
    result = parse(DESCRIBED.format(version) + rest + (end or END_09))
    fetch, *positions = [columns_of(fact) for fact in result.facts]
    assert (fetch["client_id"], fetch["api_version"], fetch["replica_id"]) == ("c; x", version, 2)
    found = [(position["topic"], position["partition"], position["fetch_offset"]) for position in positions]
    assert found == [("t", 0, 7), ("t.u", 1, 8)]


def test_fetch_as_a_class_describes_it_at_debug_has_no_partitions():
    assert row(DESCRIBED.format(1) + END_09, "fetch_requests")["partitions"] == []


def test_other_requests_as_their_classes_describe_them():
    found = row(
        "Name: ProducerRequest; Version: 0; CorrelationId: 1; ClientId: p; RequiredAcks: -1; AckTimeoutMs: 1500 ms; "
        "TopicAndPartition: [t,0] -> 10,[u,3] -> 11" + END_08,
        "produce_requests",
    )
    parts = [(part["topic"], part["partition"], part["size_bytes"]) for part in found["partitions"]]
    assert (found["acks"], parts, found["throttle_time_ms"]) == (-1, [("t", 0, 10), ("u", 3, 11)], 0)
    found = row(
        "Name: OffsetCommitRequest; Version: 1; CorrelationId: 1; ClientId: c; GroupId: g 1; GroupGenerationId: 4; "
        "ConsumerId: m; RequestInfo: [t,0] -> OffsetAndMetadata[4,]" + END_08
    )
    assert (found["api"], found["group_id"], found["records"]) == ("OFFSET_COMMIT", "g 1", None)
    found = row(
        "Name:LeaderAndIsrRequest;Version:0;Controller:1;ControllerEpoch:2;CorrelationId:3;ClientId:id_1-host_b-port_9092"
        ";Leaders:id:1,host:b,port:9092;PartitionState:(t,0) -> (LeaderAndIsrInfo:(Leader:1))" + END_08
    )
    assert (found["api"], found["correlation_id"], found["client_id"]) == ("LEADER_AND_ISR", 3, "id_1-host_b-port_9092")
    found = row("Name: ControlledShutdownRequest; Version: 0; CorrelationId: 1; BrokerId: 3" + END_08)
    assert (found["api"], found["client_id"]) == ("CONTROLLED_SHUTDOWN", None)
    assert only(lines.DESCRIBED_010, "requests")["client_id"] in ("1", "2", "3")
    found = row("Name: TopicMetadataRequest; Version: 0; CorrelationId: 1; ClientId: c" + END_08)
    assert (found["api"], found["client_id"]) == ("METADATA", "c")


@pytest.mark.parametrize(
    "text",
    [
        "Name: FetchRequest; Version: 0; CorrelationId: 5; ClientId: c" + END_08,
        "Name: FetchRequest; Version: 0; CorrelationId: 5; ClientId: c; ReplicaId: 2; ReplicaId: 3; MaxWait: 1"
        + END_08,
        DESCRIBED.format(0) + "; RequestInfo: [t,0] -> PartitionFetchInfo(7,1048576)," + END_08,
        DESCRIBED.format(0) + "; RequestInfo: [t,0] -> Partition" + END_08,
        "Name: UnheardOfRequest; Version: 0; CorrelationId: 5; ClientId: c" + END_08,
        "Name: FetchRequest; Version: 0" + END_08,
        "{api_key=99,api_version=1,correlation_id=9,client_id=c} -- {}" + END_010,
        "RequestHeader(apiKey=UNHEARD_OF, apiVersion=1, clientId=c, correlationId=9) -- {},response:{}" + END_10,
        "RequestHeader(apiKey=METADATA, apiVersion=1, clientId=c, correlationId=9) -- {}" + END_10,
        "RequestHeader(apiKey=METADATA, apiVersion=1, clientId=c, correlationId=9) -- {},response:{}" + END_09,
        "{api_key=3,api_version=1,correlation_id=9,client_id=c} -- {}" + END_08,
        "{api_key=3,api_version=1,correlation_id=9,client_id=c} -- {}",
    ],
)
def test_what_is_not_a_line_of_any_version_is_said_to_be_unparsed(text: str):
    result = parse(text)
    assert (result.template, result.outcome) == ("request.completed_text", UNPARSED)
    assert result.reason in ("bad_header", "bad_times", "bad_struct", "unknown_api")
    assert result.problem


@pytest.mark.parametrize("name", REAL)
def test_a_line_cut_anywhere_is_unparsed_or_lacks_the_end_of_what_stands_last(name: str):
    """Nothing ends a listener (up to 2.4) or a principal (up to 0.10.1): where a line is cut there, they are short."""
    whole = record(REAL[name])
    expected = parse_request(whole)
    for length in range(len("Completed request:"), len(whole.message)):
        result = parse_request(whole._replace(message=whole.message[:length]))
        if result.outcome == UNPARSED:
            continue
        for fact, true in zip(result.facts, expected.facts, strict=True):
            wrong = {column for column, value in columns_of(true).items() if columns_of(fact)[column] != value}
            assert wrong <= {"listener", "principal"}
            assert all((columns_of(true)[column] or "").startswith(columns_of(fact)[column] or "") for column in wrong)


@given(st.sampled_from(sorted(REAL)), st.data())
def test_a_line_with_a_hole_never_raises(name: str, data: st.DataObject):
    whole = record(REAL[name])
    begin = data.draw(st.integers(18, len(whole.message)))
    end = data.draw(st.integers(begin, min(len(whole.message), begin + 200)))
    result = parse_request(whole._replace(message=whole.message[:begin] + whole.message[end:]))
    assert result.outcome in (TYPED, UNPARSED)


#: Texts that clients choose: line, what stands before the text, the text, and its column.
CHOSEN = [
    ("HEARTBEAT_27", "clientId=", "c1", "client_id"),
    ("FETCH_27", "clientId=", "broker-1-fetcher-0", "client_id"),
    ("FETCH_010", "client_id=", "ReplicaFetcherThread-0-1", "client_id"),
    ("PRODUCE_010", "client_id=", "ledger-writer", "client_id"),
    ("FETCH_27", "rack_id=", "", "rack_id"),
    ("OFFSET_COMMIT_27", "committed_metadata=", "", None),
    ("OFFSET_COMMIT_27", "{group_id=", "g4", "group_id"),
    ("JOIN_GROUP_27", "{group_id=", "g3", "group_id"),
    ("SYNC_GROUP_27", "{group_id=", "g3", "group_id"),
    ("LEAVE_GROUP_27", "{group_id=", "g2", "group_id"),
    ("HEARTBEAT_27", "{group_id=", "g1", "group_id"),
    ("HEARTBEAT_27", ",member_id=", "c1", None),
    ("ADD_PARTITIONS_TO_TXN_27", "{transactional_id=", "tx-zk27-faults", "transactional_id"),
    ("END_TXN_27", "{transactional_id=", "tx-zk27-faults", "transactional_id"),
    ("INIT_PRODUCER_ID_DONE_27", "{transactional_id=", "tx-zk27-faults", "transactional_id"),
]


@pytest.mark.parametrize(("name", "before", "text", "column"), CHOSEN)
@given(data=st.data())
def test_what_a_client_calls_itself_changes_nothing_else(
    name: str, before: str, text: str, column: str | None, data: st.DataObject
):
    whole = record(REAL[name])
    head, mark, rest = whole.message.partition(before + text)
    assert mark
    tokens = [
        *re.findall(r"\w+=?|\W", rest),
        *re.findall(r",\w+=", whole.message),
        rest,
        rest.split(" from ")[0],
        "} -- {",
    ]
    hostile = "".join(data.draw(st.lists(st.sampled_from(tokens), max_size=6)))
    result = parse_request(whole._replace(message=head + before + hostile + rest))
    if result.outcome == UNPARSED:
        return
    expected = [dict(columns_of(fact)) for fact in parse_request(whole).facts]
    if column == "rack_id":
        expected[0][column] = hostile or None
    elif column is not None:
        expected[0][column] = None if hostile == "null" and column != "group_id" else hostile
    assert [{**columns_of(fact), "body": None} for fact in result.facts] == [
        {**true, "body": None} for true in expected
    ]


@pytest.mark.parametrize("text", ["my, app", "a=b;c", "group (eu)", "x -- y", " from connection ", "späte Gruppe"])
def test_odd_names_are_read(text: str):
    message = record(lines.HEARTBEAT_27).message.replace("{group_id=g1", "{group_id=" + text)
    message = message.replace("clientId=c1", "clientId=" + text)
    (fact,) = parse_request(record(lines.HEARTBEAT_27)._replace(message=message)).facts
    assert (columns_of(fact)["group_id"], columns_of(fact)["client_id"]) == (text, text)
