"""A follower's high watermark above its leader's, or above its own log end offset.

A follower's line shows the high watermark that it took. The leader's follows from its answers. A leader's high
watermark only grows, so an answer to a later fetch of the follower in the same epoch is an upper bound. The offset of
that fetch is an upper bound of the follower's log end offset then. Since 3.3 the line itself also shows the leader's
answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from highwater.pipelines.rules.proofs.fetch_chain import written_before
from highwater.pipelines.rules.rule import OPEN, Case, Checker, Severity, brokers_of
from highwater.schemas.audit_facts import Fact

#: Candidates of a broker that wait for a proof at most.
PENDING_MAX = 64


@dataclass
class _Candidate:
    """A follower's high watermark above its leader's offset. Legal if the follower's log starts there."""

    fact: Fact
    limit: int
    proof: tuple[Fact, ...]


@dataclass
class FollowerHighWatermarkAboveLeader(Checker):
    _pending: dict[int, list[_Candidate]] = field(default_factory=dict)

    def observe(self, fact: Fact) -> Iterable[Case]:
        if fact.name == "follower" and fact.high_watermark is not None and fact.broker_id is not None:
            yield from self._prove_by_lower(fact, fact.broker_id)
            yield from self._check_taken(fact, fact.broker_id, fact.high_watermark)

    def finish(self) -> Iterable[Case]:
        for candidates in self._pending.values():
            for candidate in candidates:
                yield _make_case(OPEN, candidate, candidate.limit, "the leader's high watermark")

    # ------------------------------------------------------------------ proofs

    def _check_taken(self, fact: Fact, follower: int, taken: int) -> Iterable[Case]:
        judged = fact.offset is not None
        for stretch in self._history.stretches.known:
            if stretch.first.replica_id != follower or not stretch.begun(fact.time_us - self._settings.skew_max_us):
                continue
            later = stretch.sent_after(fact.time_us + self._settings.skew_max_us)
            if later is None:
                continue
            judged = True
            position, high_watermark = stretch.positions[later], stretch.high_watermarks[later]
            if taken <= min(position, high_watermark):
                break
            proof = (stretch.fact(later), stretch.first)
            if taken <= position:
                self._wait(follower, _Candidate(fact, high_watermark, proof))
                break
            severity = self._severity(fact, *proof)
            if severity is not None:
                yield _make_case(severity, _Candidate(fact, position, proof), position, "its own log end offset")
            break
        # The leader's answer is the better witness.
        if fact.offset is not None and taken > fact.offset:
            self._wait(follower, _Candidate(fact, fact.offset, ()))
        self.checked += judged

    def _wait(self, follower: int, candidate: _Candidate) -> None:
        pending = self._pending.setdefault(follower, [])
        if len(pending) < PENDING_MAX and all(other.fact is not candidate.fact for other in pending):
            pending.append(candidate)

    def _prove_by_lower(self, fact: Fact, follower: int) -> Iterable[Case]:
        """Yield violations proven by a lower high watermark later: the follower's log did not start that high."""
        pending = self._pending.get(follower)
        if not pending:
            return
        waiting = []
        for candidate in pending:
            lower = (fact.high_watermark or 0) < (candidate.fact.high_watermark or 0)
            if not lower or not written_before(candidate.fact, fact):
                waiting.append(candidate)
                continue
            severity = self._severity(candidate.fact, fact, *candidate.proof)
            if severity is not None:
                shown = _Candidate(candidate.fact, candidate.limit, (*candidate.proof, fact))
                yield _make_case(severity, shown, candidate.limit, "the leader's high watermark")
        self._pending[follower] = waiting


def _make_case(severity: Severity, candidate: _Candidate, limit: int, what: str) -> Case:
    fact = candidate.fact
    message = f"Follower {fact.broker_id} took a high watermark of {fact.high_watermark}, above {what}, {limit}"
    if severity == OPEN:
        message += "; open, as nothing shows that its log did not start there, or that the topic was not re-created"
    return Case(
        severity,
        f"{message}.",
        (fact, *candidate.proof),
        leader_epoch=candidate.proof[0].leader_epoch if candidate.proof else None,
        offset_start=limit,
        offset_end=fact.high_watermark,
        time_us=fact.time_us,
        brokers=brokers_of((fact, *candidate.proof)),
    )
