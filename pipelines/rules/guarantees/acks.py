"""Acknowledgements against the rule of `DelayedProduce`: too early, or much too late."""

from __future__ import annotations

from collections.abc import Iterable

from highwater.pipelines.kafka.releases import release_of
from highwater.pipelines.kafka.versions import rule_of
from highwater.pipelines.replay.outcome import COARSE_TIMES
from highwater.pipelines.rules.rule import OPEN, VIOLATION, Case, Checker, Severity
from highwater.schemas.audit_facts import Fact


class _OfAnswers(Checker):
    def _count(self, fact: Fact) -> None:
        """Count an answer as checked, unless its timestamps are whole seconds and so cannot show a wrong time."""
        self.checked += not (fact.detail or "").startswith(f"{COARSE_TIMES}|")

    def _find_isr_lines(self, fact: Fact) -> tuple[Fact, ...] | None:
        """Return the lines that show the ISR during the wait. None if one may be missing between them."""
        if fact.broker_id is None or fact.latest_us is None:
            return None
        return self._history.isr_known.through(fact.broker_id, fact.latest_us, fact.log_append_time_us or fact.time_us)

    def _choose_severity(self, fact: Fact, *, is_proven: bool) -> Severity:
        """Return the severity of a wrong answer time. Unproven, or without a known version, it is undecided."""
        return VIOLATION if is_proven and release_of(self._settings.version_of(fact)) is not None else OPEN


class AckBeforeCommit(_OfAnswers):
    """Finds acks=all answers sent before the record was committed."""

    def observe(self, fact: Fact) -> Iterable[Case]:
        self._count(fact)
        if fact.name != "contradicted" or fact.error_code or fact.derived is not None:
            return
        known = self._find_isr_lines(fact)
        self.awaits_history = self.awaits_history or known is None
        message = (
            f"A produce at offset {fact.offset} was acknowledged although the high watermark did not pass it as long "
            f"as broker {fact.broker_id} led."
        )
        yield _make_case(self._choose_severity(fact, is_proven=known is not None), fact, message, known or ())


class LateCompletion(_OfAnswers):
    """Finds acks=all answers sent long after the record was committed."""

    def observe(self, fact: Fact) -> Iterable[Case]:
        self._count(fact)
        if fact.name != "late" or fact.error_code or fact.derived is not None or fact.isr is None:
            return  # The replicas or the offset were guessed, so the due time is unknown.
        reason, bug, api = (fact.detail or "||").split("|")
        if reason != "lost_wake_up":
            return
        proof = self._find_isr_lines(fact)
        self.awaits_history = self.awaits_history or proof is None
        stands_still = proof is None or self._can_be_held(fact, proof)
        if stands_still and self._is_min_isr_needed(fact) and self._get_min_isr(fact) is None:
            return  # No line shows whether the ISR was large enough for anything to be due.
        late_ms = fact.previous or 0
        message = (
            f"A {api} of client {fact.client} at offset {fact.offset} could have been answered {late_ms} ms before it "
            "was: the replicas that it waited for had the records, or had left the ISR, and the leader was answering "
            f"others meanwhile{'; this version has ' + bug if bug else ''}."
        )
        severity = self._choose_severity(fact, is_proven=not stands_still)
        yield _make_case(severity, fact, message, proof or (), bug or None)

    def _can_be_held(self, fact: Fact, lines: tuple[Fact, ...]) -> bool:
        """Return True if a small ISR may have held back the high watermark: since 3.7 it needs min.insync.replicas.

        A line that raised min.insync.replicas may be missing.
        """
        # No value is larger than the replicas that there are.
        return self._is_min_isr_needed(fact) and any(
            not line.replicas or set(line.isr or ()) != set(line.replicas) for line in lines
        )

    def _is_min_isr_needed(self, fact: Fact) -> bool:
        return rule_of(self._settings.version_of(fact), lambda rules: rules.high_watermark_needs_min_isr) is not False

    def _get_min_isr(self, fact: Fact) -> int | None:
        if fact.broker_id is None:
            return None
        return self._settings.min_insync_replicas(fact.broker_id, fact.latest_us or fact.time_us)


def _make_case(severity: Severity, fact: Fact, message: str, lines: tuple[Fact, ...], bug: str | None = None) -> Case:
    return Case(
        severity,
        message,
        (fact, *lines),
        leader_epoch=fact.leader_epoch,
        offset_start=fact.offset,
        offset_end=fact.end_offset,
        time_us=fact.time_us,
        brokers=tuple(broker for broker in (fact.broker_id, fact.replica_id) if broker is not None),
        known_bug=bug,
    )
