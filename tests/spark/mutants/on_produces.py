"""Mutants of produces and their answers."""

from __future__ import annotations

import orjson

from tests.spark.mutants.changes import Body, Change, Where, alter, drop, each, edit, later
from tests.spark.mutants.mutant import LEFT_OPEN, OBSERVED, OPEN_TOO, Mutant
from tests.spark.mutants.slices import Records

DUPLICATE = Where(r'"correlationId":490,"clientId":"p5".*"baseOffset":1714')
ORIGINAL = Where(r'"correlationId":288,"clientId":"p5".*"baseOffset":1714')
CREATED = Where(r"Created log for partition transfers-\d ")


def produce(topic: str, partition: int, client: str = r"\w+", nth: int | None = None) -> Where:
    """Produces of a client to one partition."""
    return Where(
        rf'"clientId":"{client}","requestApiKeyName":"PRODUCE".*'
        rf'"topicData":\[{{"name":"{topic}","partitionData":\[{{"index":{partition},.*"errorCode":0',
        nth=nth,
    )


def _answer(body: Body) -> Body:
    part: Body = body["response"]["responses"][0]["partitionResponses"][0]
    return part


def _asked(body: Body) -> Body:
    part: Body = body["request"]["topicData"][0]["partitionData"][0]
    return part


def taken_for(where: Where, original: Where, larger: int = 33) -> Change:
    """A produce is answered as if it repeated another one, which was smaller by some bytes."""

    def changed(records: Records) -> Records:
        first = original.find(records)[0]
        body = orjson.loads(first.message.removeprefix("Completed request:"))

        def change(other: Body) -> None:
            _answer(other).update(baseOffset=_answer(body)["baseOffset"], logAppendTimeMs=first.time_us // 1000 - 2)
            _asked(other)["recordsSizeInBytes"] = _asked(body)["recordsSizeInBytes"] + larger

        return edit(where, change)(records)

    return changed


def failed(where: Where, error_code: int) -> Change:
    """The answer is an error, and has the offset all the same."""
    return edit(where, lambda body: _answer(body).update(errorCode=error_code))


def _min_isr(value: int) -> Change:
    return alter(CREATED, r"properties \{\}", f"properties {{min.insync.replicas={value}}}")


DUPLICATES = "acked-as-duplicate-of-another-batch"
UNDER_MIN = "ack-under-min-isr"
MUTANTS = (
    Mutant(
        "answered with the offset of an earlier, smaller batch",
        "kraft39",
        taken_for(produce("payments", 1, "p5", -1), produce("payments", 1, "p5", 0)),
        DUPLICATES,
        partition=1,
    ),
    Mutant(
        "answered with the offset of an earlier, smaller batch, with text sizes",
        "zk28",
        taken_for(produce("payments", 1, "p5", -1), produce("payments", 1, "p5", 0)),
        DUPLICATES,
        partition=1,
    ),
    Mutant(
        "answered with the offset of another client's batch",
        "zk28",
        taken_for(produce("payments", 1, "p5", -1), produce("payments", 1, "p3", 0)),
        DUPLICATES,
        OPEN_TOO,
        partition=1,
    ),
    Mutant(
        "the batch that was never written is larger",
        "duplicate",
        edit(DUPLICATE, lambda body: _asked(body).update(recordsSizeInBytes=999)),
        DUPLICATES,
        partition=2,
    ),
    Mutant(
        "an honest retry: the same size, answered with the first one's offset",
        "kraft39",
        taken_for(produce("payments", 1, "p5", -1), produce("payments", 1, "p5", 0), larger=0),
    ),
    Mutant(
        "the duplicate has its original's size: an honest retry",
        "duplicate",
        edit(DUPLICATE, lambda body: _asked(body).update(recordsSizeInBytes=296)),
    ),
    Mutant("the original of a duplicate is not in the log", "duplicate", drop(ORIGINAL)),
    Mutant(
        "an ISR of three under min.insync.replicas 4",
        "lostwake",
        _min_isr(4),
        UNDER_MIN,
        LEFT_OPEN,
        topic="transfers",
        partition=0,
    ),
    Mutant(
        "the ISR shrank to two under min.insync.replicas 3, and nobody joined again",
        "lostwake",
        each(
            _min_isr(3),
            alter(Where(r"transfers-0.*ISR updated to 1,3,2"), "updated to 1,3,2", "updated to 3,1"),
            alter(Where(r"transfers-0 updated to \[1,3,2\]"), r"\[1,3,2\]", "[3,1]"),
        ),
        UNDER_MIN,
        LEFT_OPEN,
        topic="transfers",
        partition=0,
    ),
    Mutant("min.insync.replicas as the ISR has it", "lostwake", _min_isr(2)),
    Mutant(
        "a produce is answered 1.5 s late while others are answered",
        "kraft39",
        later(produce("payments", 1, "p5", 20), 1500),
        "late-completion",
        LEFT_OPEN,
        partition=1,
    ),
    Mutant(
        "a produce is answered 2 s late while others are answered, of the version that has the bug",
        "zk28",
        later(produce("payments", 1, "p5", 10), 2000),
        "late-completion",
        partition=1,
    ),
    Mutant(
        "a produce that was appended is answered REQUEST_TIMED_OUT",
        "kraft39",
        failed(produce("payments", 1, "p5", 10), 7),
        "error-yet-committed",
        OBSERVED,
        partition=1,
    ),
    Mutant(
        "a produce that was appended is answered NOT_ENOUGH_REPLICAS_AFTER_APPEND",
        "lostwake",
        failed(produce("transfers", 0, "w0", 5), 20),
        "error-yet-committed",
        OBSERVED,
        topic="transfers",
        partition=0,
    ),
)
