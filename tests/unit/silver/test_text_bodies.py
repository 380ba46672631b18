"""Bodies of requests in text."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import ValidationError

from highwater.pipelines.grammars.body_shapes import REQUEST, RESPONSE
from highwater.pipelines.grammars.text_bodies import BadStruct, read_text
from tests.examples import examples

HEARTBEAT = "{group_id=g,generation_id=1,member_id=m,group_instance_id=null}"


def test_fields_have_their_names_of_the_json_form_and_values_of_their_types() -> None:
    body = read_text("HEARTBEAT", REQUEST, 3, HEARTBEAT)
    assert (body.groupId, body.generationId, body.memberId, body.groupInstanceId) == ("g", 1, "m", None)


def test_tagged_fields_are_left_out_whatever_is_in_them() -> None:
    tags = ",_tagged_fields={0={epoch=1,end_offset=2,_tagged_fields={}}, 1=RawTaggedField@1f}}"
    assert read_text("HEARTBEAT", REQUEST, 3, HEARTBEAT[:-1] + tags) == read_text("HEARTBEAT", REQUEST, 3, HEARTBEAT)


def test_buffers_stay_texts() -> None:
    assignment = "java.nio.HeapByteBuffer[pos=0 lim=36 cap=36]"
    text = (
        f"{{group_id=g,generation_id=1,member_id=m,group_assignment=[{{member_id=m,member_assignment={assignment}}}]}}"
    )
    (one,) = read_text("SYNC_GROUP", REQUEST, 1, text).assignments
    assert (one.memberId, one.assignment) == ("m", assignment)


def test_what_a_broker_says_may_have_brackets() -> None:
    said = "The timestamp should be within [1, 2]"
    answer = "index=0,error_code=32,base_offset=-1,log_append_time=-1,log_start_offset=0,record_errors=[{batch_index=3,"
    answer += f"batch_index_error_message=null}}],error_message={said}"
    text = f"{{responses=[{{topic=t,partition_responses=[{{{answer}}}]}}],throttle_time_ms=0}}"
    (partition,) = read_text("PRODUCE", RESPONSE, 8, text).responses[0].partitionResponses
    assert (partition.errorCode, partition.errorMessage, partition.recordErrors[0].batchIndex) == (32, said, 3)


def test_a_text_may_have_commas_and_equals_signs() -> None:
    text = "{group_id=a,b, c=d==,generation_id=1,member_id=m,group_instance_id=null}"
    assert read_text("HEARTBEAT", REQUEST, 3, text).groupId == "a,b, c=d=="


def test_reading_stops_before_what_a_client_may_write() -> None:
    text = "{group_id=g,generation_id=1,member_id=m,group_instance_id=null,topics=[{name=t,metadata=}}]{,group_id=}]}"
    assert read_text("OFFSET_COMMIT", REQUEST, 7, text).groupId == "g"
    with pytest.raises(BadStruct):
        read_text("OFFSET_COMMIT", REQUEST, 7, text.replace("metadata=", "metadata=x,topics=["))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        HEARTBEAT + "x}",
        HEARTBEAT[:-1],
        HEARTBEAT * 2,
        HEARTBEAT.replace("group_id=g", "group_id=g,group_id=h"),
        HEARTBEAT.replace("group_id=g", "group_id=g,x=h"),
        HEARTBEAT.replace("group_id=g", "group_id=[]"),
        HEARTBEAT.replace("group_id=g", "group_id={b=1}"),
        HEARTBEAT.replace("group_id=g", "group_id=a}b"),
        HEARTBEAT.replace("member_id=m,", ""),
        HEARTBEAT.replace("member_id", "memberid"),
        HEARTBEAT.replace("=1", "=one"),
        HEARTBEAT.replace("=1", "=1" + "0" * 19),
        "{group_id=g,member_id=m,generation_id=1,group_instance_id=null}",
    ],
)
def test_what_is_not_exactly_one_body_is_refused(text: str) -> None:
    with pytest.raises((BadStruct, ValidationError)):
        read_text("HEARTBEAT", REQUEST, 3, text)


@examples(300)
@given(st.text(alphabet="{}[]=,ab1_ \n"), st.integers(0, len(HEARTBEAT)))
def test_any_text_is_a_body_or_refused(text: str, at: int) -> None:
    with suppress(BadStruct, ValidationError):
        read_text("HEARTBEAT", REQUEST, 3, HEARTBEAT[:at] + text + HEARTBEAT[at:])
