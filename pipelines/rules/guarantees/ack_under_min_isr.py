"""acks=all answered with fewer in-sync replicas than min.insync.replicas asks, and what was committed meanwhile."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from highwater.pipelines.kafka.versions import rule_of
from highwater.pipelines.rules.rule import OBSERVATION, OPEN, Case, Checker, brokers_of
from highwater.schemas import audit_facts as a
from highwater.schemas.audit_facts import Fact

KAFKA_15583 = "KAFKA-15583"
#: Microseconds for which the ISR must be too small: a request's times are upper bounds, as its line may be late.
LATE_LINE_US = 1_000_000


@dataclass
class AckUnderMinIsr(Checker):
    _advanced: dict[int, list[Fact]] = field(default_factory=dict)

    def observe(self, fact: Fact) -> Iterable[Case]:
        if fact.kind == a.HIGH_WATERMARK:
            self._note_move(fact)
        else:
            yield from self._check_answer(fact)

    def _check_answer(self, fact: Fact) -> Iterable[Case]:
        """Yield a possible violation if a produce was acknowledged while the ISR was below min.insync.replicas.

        The ISR must be too small both at the append and at the answer.
        """
        if fact.error_code != 0 or fact.broker_id is None or fact.offset is None or fact.name != "all":
            return
        self.checked += 1
        read_us, handled_us = fact.earliest_us, fact.latest_us
        if read_us is None or handled_us is None:
            return
        required = self._settings.min_insync_replicas(fact.broker_id, handled_us)
        if required is None or required < 2:
            return
        covering = self._history.isr_known.through(fact.broker_id, read_us - LATE_LINE_US, handled_us)
        if covering is None:
            self._await_isr(fact.broker_id, read_us - LATE_LINE_US, required)
        lines = _drop_last(covering)
        sizes = {len(line.isr) for line in lines if line.isr is not None}
        if not sizes or max(sizes) >= required or any(line.isr is None for line in lines):
            return
        yield Case(
            OPEN,
            f"A produce at offset {fact.offset} was appended and acknowledged while the ISR had {max(sizes)} "
            f"replicas; min.insync.replicas is {required}.",
            (fact, *lines),
            offset_start=fact.offset,
            offset_end=fact.offset + 1,
            time_us=fact.time_us,
            brokers=(fact.broker_id,),
        )

    def _await_isr(self, broker_id: int, since_us: int, required: int) -> None:
        """Set `awaits_history` if later lines may show that the ISR was too small at `since_us`."""
        before = self._history.isr_known.before(broker_id, since_us)
        if before is not None and (before.isr is None or len(before.isr) < required):
            self.awaits_history = True

    def _note_move(self, fact: Fact) -> None:
        """Record that the leader moved its high watermark while the ISR was too small: legal before 3.7."""
        if fact.name != "updated" or fact.broker_id is None:
            return
        version = self._settings.version(fact.broker_id, fact.time_us)
        if rule_of(version, lambda rules: rules.high_watermark_needs_min_isr) is not False:
            return
        required = self._settings.min_insync_replicas(fact.broker_id, fact.time_us)
        if required is None or required < 2:
            return
        lines = _drop_last(self._history.isr_known.through(fact.broker_id, fact.time_us, fact.time_us))
        if not lines or any(line.isr is None or len(line.isr) >= required for line in lines):
            return
        self.checked += 1
        moves = self._advanced.setdefault(lines[0].partition_epoch or 0, [])
        if not moves:
            moves += [lines[0], fact, fact]
        else:
            moves[-1] = fact

    def finish(self) -> Iterable[Case]:
        for _, (state, first, last) in sorted(self._advanced.items()):
            yield Case(
                OBSERVATION,
                f"The high watermark advanced from {first.previous if first.previous is not None else '?'} to "
                f"{last.high_watermark} while the ISR was {list(state.isr or ())}, smaller than min.insync.replicas: "
                "in this version a shrunken ISR can still commit (KAFKA-15583, fixed in 3.7.0).",
                (state, first, last),
                offset_start=first.previous,
                offset_end=last.high_watermark,
                time_us=first.time_us,
                brokers=brokers_of((first,)),
                known_bug=KAFKA_15583,
            )


def _drop_last(lines: tuple[Fact, ...] | None) -> tuple[Fact, ...]:
    """Return the lines without the last one, which only proves that none is missing. Empty for None."""
    return lines[:-1] if lines is not None else ()
