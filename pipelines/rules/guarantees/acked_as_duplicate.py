"""Batches that were acknowledged as the duplicate of another one, and so were never written.

A broker recognises a retry by its producer id and sequence numbers (KIP-98), not by its content. A client that reuses a
sequence number for other records gets the old batch's offset as its answer, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from highwater.pipelines.rules.rule import KEPT, OPEN, VIOLATION, Case, Checker, brokers_of
from highwater.schemas.audit_facts import Fact

#: Batches of one producer that a broker remembers (``ProducerStateEntry.NUM_BATCHES_TO_RETAIN``); more answers with one
#: base offset than this are not compared.
ANSWERS_MAX = 64
#: The log append time of an answer and the handling of the request that appended, both on the clock of one broker or of
#: two whose clocks differ: no more than this and the clocks' skew.
APPEND_SLACK_US = 100_000


@dataclass
class AckedAsDuplicate(Checker):
    """Compares produce answers with equal base offsets. Answers arrive in offset order."""

    _same: list[Fact] = field(default_factory=list, metadata=KEPT)

    def observe(self, fact: Fact) -> Iterable[Case]:
        cases: list[Case] = []
        if self._same and self._same[0].offset != fact.offset:
            cases = self._compare()
            self._same = []
        if len(self._same) < ANSWERS_MAX:
            self._same.append(fact)
        return cases

    def finish(self) -> Iterable[Case]:
        return self._compare() if self._same else ()

    def _compare(self) -> list[Case]:
        # Where times are whole seconds, no request is known as exactly as the append time that a later answer carries.
        self.checked += sum(1 for fact in self._same if not fact.error_code and not self._get_blur_us(fact))
        cases = []
        ordered = sorted(self._same, key=lambda fact: fact.time_us)
        for at, duplicate in enumerate(ordered):
            if duplicate.error_code or any(_is_repeat(duplicate, fact) for fact in ordered if fact is not duplicate):
                continue
            others = [fact for fact in ordered[:at] if _has_other_size(fact, duplicate)]
            original = next((fact for fact in others if self._has_append_time(fact, duplicate)), None)
            survived = self._has_survived(original, duplicate) if original is not None else False
            if original is not None:
                self.is_final = False  # A later fetch may show whether the leader surely led then.
            if original is not None and survived is not False:
                cases.append(_make_case(duplicate, original, certain=bool(survived)))
        return cases

    def _get_blur_us(self, fact: Fact) -> int:
        return self._settings.blur_us(fact.broker_id if fact.broker_id is not None else -1, fact.time_us)

    def _has_survived(self, original: Fact, duplicate: Fact) -> bool | None:
        """Return True if the first batch was still at its offset at the later answer. None if unknown.

        True if no leader epoch between the two answers starts at or below that offset. So no other batch was written
        there.
        """
        if original.broker_id is None or duplicate.broker_id is None or original.offset is None:
            return None
        first = self._history.tenure(original.broker_id, original.earliest_us or original.time_us)
        last = self._history.tenure(duplicate.broker_id, duplicate.latest_us or duplicate.time_us)
        if first is None or last is None or not last.certain:
            return None
        for number in range(first.epoch + 1, last.epoch + 1):
            start = self._history.epoch(number, duplicate.time_us).start
            if start is None:
                return None
            if start[0] <= original.offset:
                return False
        return True

    def _has_append_time(self, original: Fact, duplicate: Fact) -> bool:
        """Return True if the later answer has the other request's append time: the broker took it for that batch."""
        if duplicate.log_append_time_us is None or original.earliest_us is None or original.latest_us is None:
            return False
        slack_us = APPEND_SLACK_US + (0 if original.broker_id == duplicate.broker_id else self._settings.skew_max_us)
        earliest_us, latest_us = original.earliest_us - slack_us, original.latest_us + slack_us
        return earliest_us <= duplicate.log_append_time_us <= latest_us


def _is_repeat(answer: Fact, other: Fact) -> bool:
    """Return True if the answer may be of a retry: same client, and the size of the first attempt."""
    return answer.size_bytes is not None and answer.size_bytes == other.size_bytes and answer.client == other.client


def _has_other_size(answer: Fact, other: Fact) -> bool:
    return None not in (answer.size_bytes, other.size_bytes) and answer.size_bytes != other.size_bytes


def _make_case(duplicate: Fact, original: Fact, *, certain: bool) -> Case:
    answered = "acknowledged" if not original.error_code else f"answered with error {original.error_code}"
    message = (
        f"A batch of {duplicate.size_bytes} bytes of client {duplicate.client} was acknowledged with base offset "
        f"{duplicate.offset}, where the client's batch of {original.size_bytes} bytes had been appended before "
        f"({answered}): the broker took it for a retry of that one, and its records were never written."
    )
    same = original.client == duplicate.client
    return Case(
        VIOLATION if same and certain else OPEN,
        message,
        (original, duplicate),
        offset_start=duplicate.offset,
        offset_end=None if duplicate.offset is None else duplicate.offset + 1,
        time_us=duplicate.time_us,
        brokers=brokers_of((original, duplicate)),
        cause="sequence_reused",
    )
