"""Entries are complete, and lead from lines to meanings."""

from __future__ import annotations

import re

import pytest

from highwater.pipelines.incidents.kinds import BY_NAME
from highwater.pipelines.messages.atlas import HOUSEKEEPING, atlas
from highwater.pipelines.messages.exceptions import Thrown, advice_of, cause_of, causes, most_specific
from tests.bench.messages import (
    CATALOGUE,
    DOCUMENT,
    catalogue,
    document,
    is_loud,
    misplaced,
    without_entry,
    without_text,
)

_PARTS = ("begins", "continues", "ends", "explains")


def test_each_entry_says_what_it_means_in_one_short_sentence() -> None:
    for message_id, message in atlas().messages.items():
        words = message.meaning.split()
        assert message.meaning.endswith("."), message_id
        assert 3 <= len(words) <= 32, message_id
        assert message.texts, message_id
        assert message.levels, message_id
        assert not re.search(r"\b(?:stands?|tells?|told|anew|beside|nobody)\b", message.meaning), message_id


def test_what_is_major_asks_for_more_than_to_read_on() -> None:
    lacking = [
        message_id
        for message_id, message in atlas().messages.items()
        if message.severity in ("critical", "major")
        and message.action in ("", "Read the exception.", "Read the error.")
    ]
    assert lacking == []


def test_a_duration_has_its_unit() -> None:
    texts = (text for message in atlas().messages.values() for _, text in message.texts)
    assert [text for text in texts if re.search(r"\{duration\}(?!\]? ?(?:ms|seconds)\b)", text)] == []


def test_each_part_is_a_word_and_a_kind() -> None:
    for message_id, message in atlas().messages.items():
        for part in filter(None, message.part.split(", ")):
            words = part.split()
            assert part == HOUSEKEEPING or (len(words) == 2 and words[0] in _PARTS), message_id
            assert part == HOUSEKEEPING or words[1] in BY_NAME, message_id


def test_no_two_entries_have_the_same_text_of_the_same_class() -> None:
    seen: dict[tuple[str, str], str] = {}
    for message_id, message in atlas().messages.items():
        for _, text in message.texts:
            bare = re.sub(r"\{\w*\}", "{}", text)
            if len(bare.replace("{}", "").strip()) < 12:
                continue
            for source in {source.partition(".")[0] for source in message.source}:
                assert seen.setdefault((source, bare), message_id) == message_id


@pytest.mark.corpora
def test_each_text_of_the_catalogue_has_an_entry_and_each_entry_a_text() -> None:
    if not CATALOGUE.is_file():
        pytest.skip("the catalogue of texts is not beside the checkout")
    every = catalogue()
    rows = [row for row in every if is_loud(row)]
    assert [(row["class"], row["template"]) for row in without_entry(rows)] == []
    assert without_text(every) == []
    assert list(misplaced(every)) == []


_TRACE = """Error while rolling log segment for meter-5 in dir /data
java.io.IOException: Map failed
\tat sun.nio.ch.FileChannelImpl.map(FileChannelImpl.java:940)
Caused by: java.lang.OutOfMemoryError: Map failed
\tat sun.nio.ch.FileChannelImpl.map0(Native Method)
\t... 25 more"""


def test_the_innermost_exception_is_the_last_cause() -> None:
    assert most_specific(_TRACE) == Thrown("OutOfMemoryError", "Map failed")
    assert most_specific("Fetch failed: java.io.IOException: Connection to 2 was lost (kafka.server.X)") == Thrown(
        "IOException", "Connection to 2 was lost"
    )
    assert most_specific("Nothing was thrown") is None


def test_a_suppressed_exception_is_no_cause() -> None:
    record = "Failed\njava.lang.IllegalStateException: a\n\tSuppressed: java.io.IOException: b\n\t\tat x.Y.z(Y.java:1)"
    assert most_specific(record) == Thrown("IllegalStateException", "a")


def test_a_cause_with_a_text_comes_before_that_of_its_class() -> None:
    for name, text, cause_id in (
        ("OutOfMemoryError", "Map failed", "map_failed"),
        ("OutOfMemoryError", "Java heap space", "heap_memory"),
        ("OutOfMemoryError", "something else", "out_of_memory"),
        ("IOException", "No space left on device", "disk_full"),
        ("FileSystemException", "x: Read-only file system", "read_only"),
        ("NotEnoughReplicasException", "", "not_enough_replicas"),
    ):
        found = cause_of(Thrown(name, text))
        assert found is not None
        assert found[0] == cause_id
    assert cause_of(Thrown("SomebodysException", "")) is None


def test_the_longest_text_of_an_exception_decides() -> None:
    text = "requirement failed: 8120455 messages in segment a but offset map can fit only 4473924"
    found = cause_of(Thrown("IllegalArgumentException", text))
    assert found is not None
    assert found[0] == "offset_map_full"
    found = cause_of(Thrown("IllegalArgumentException", "requirement failed: Each listener must have a different port"))
    assert found is not None
    assert found[0] == "listeners_share_a_port"


def test_a_cause_without_a_message_says_less_than_the_exception_around_it() -> None:
    record = (
        "Fatal error\njava.lang.RuntimeException: no controller\nCaused by: java.util.concurrent.CancellationException"
    )
    assert most_specific(record) == Thrown("RuntimeException", "no controller")
    assert most_specific("Failed\njava.lang.NullPointerException\n\tat x") == Thrown("NullPointerException", "")


def test_each_cause_can_be_found() -> None:
    for cause_id, cause in causes().items():
        name = cause.classes[0] if cause.classes else "IOException"
        text = cause.texts[0] if cause.texts else ""
        found = cause_of(Thrown(name, text))
        assert found is not None
        assert bool(found[1].texts) == bool(cause.texts), cause_id


def test_the_document_is_that_of_the_entries() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == document()


def test_the_remedy_of_a_line_comes_before_that_of_a_class_of_exceptions() -> None:
    of_text, of_class = causes()["disk_full"], causes()["unfinished_fault"]
    assert advice_of("Restart the broker.", None) == "Restart the broker."
    assert advice_of("Restart the broker.", of_text) == of_text.action
    assert advice_of("Restart the broker.", of_class) == "Restart the broker."
    for reads_only in ("", "Read the exception.", "Read the error."):
        assert advice_of(reads_only, of_class) == of_class.action
    assert advice_of("Read the exception; restart the node.", of_class) == f"Restart the node. {of_class.action}"
    assert advice_of("Correct what the exception names.", of_class).startswith("Correct what the exception names. ")
