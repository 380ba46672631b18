"""The grammar of printed structs."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.grammars.struct_text import BadStruct, read_struct


def test_names_are_in_camel_case_and_values_of_their_kinds():
    text = (
        "{error_code=-1,is_new=false,rack=null,isr=[1,2],topics=[{name=12,partitions=[]},{name=null,partitions=[3]}]}"
    )
    assert read_struct(text) == {
        "errorCode": -1,
        "isNew": False,
        "rack": None,
        "isr": [1, 2],
        "topics": [{"name": "12", "partitions": []}, {"name": "null", "partitions": [3]}],
    }


def test_tagged_fields_are_left_out_whatever_is_in_them():
    text = "{a=1,_tagged_fields={0={epoch=1,end_offset=2,_tagged_fields={}}, 1=RawTaggedField@1f}}"
    assert read_struct(text) == {"a": 1}


def test_buffers_stay_texts():
    text = "{assignments=[{member_id=m,assignment=java.nio.HeapByteBuffer[pos=0 lim=36 cap=36]}]}"
    assignments = read_struct(text)["assignments"]
    assert assignments == [{"memberId": "m", "assignment": "java.nio.HeapByteBuffer[pos=0 lim=36 cap=36]"}]


def test_what_a_broker_says_may_have_brackets():
    text = "{error_message=The timestamp should be within [1, 2],error_code=32}"
    assert read_struct(text) == {"errorMessage": "The timestamp should be within [1, 2]", "errorCode": 32}


def test_a_text_may_have_commas_and_equals_signs():
    assert read_struct("{group_id=a,b, c=d==,generation_id=1}") == {"groupId": "a,b, c=d==", "generationId": 1}


def test_reading_stops_before_what_a_client_may_write():
    text = "{group_id=g,topics=[{name=t,metadata=}}]{,group_id=}]}"
    assert read_struct(text, stop=("topics",)) == {"groupId": "g"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "{}x}",
        "{a}",
        "{a=[1],}",
        "{a=[1] b=2}",
        "{a=[1,2}",
        "{a={b=1}",
        "{group_id=g,group_id=h}",
        "{group_id=[],generation_id=1}",
        "{group_id={b=1},generation_id=1}",
        "{group_id=a}b,generation_id=1}",
        "{a=1}{b=2}",
        "{a=" * 40 + "1" + "}" * 40,
    ],
)
def test_what_is_not_exactly_one_struct_is_refused(text: str):
    with pytest.raises(BadStruct):
        read_struct(text)


@given(st.text(alphabet="{}[]=,ab1_ \n"))
def test_any_text_is_a_struct_or_refused(text: str):
    with suppress(BadStruct):
        assert isinstance(read_struct("{" + text + "}"), dict)
