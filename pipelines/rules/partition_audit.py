"""All rules over one partition: facts in, cases out. Pure.

A rule that fails takes no other with it, and is never silent: what it raised becomes a result.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from pipelines.replay.versions import parse_version
from pipelines.rules.history import PLACE, PartitionHistory
from pipelines.rules.rule import Case, Checker, Rule, Settings
from pipelines.rules.worst import CASES_MAX, SEVERITIES, cut
from schemas import audit_facts as a
from schemas.audit_facts import HISTORY_RANK, RANK, Fact

#: Brokers of this version and later compare the leader epoch of every fetch with their own.
EPOCHS_COMPARED: Final = (2, 5, 0)


@dataclass
class RuleOutcome:
    """What one rule made of one partition.

    Attributes:
        checked: facts that it judged.
        cases: what it found, the worst if there is much of it.
        left_out: by severity, what it found beyond them.
        error: what it raised, if it failed; its cases count as none then.
    """

    rule_id: str
    checked: int = 0
    cases: list[Case] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    error: str | None = None


class PartitionAudit:
    """Feeds one partition's facts to the rules; facts come in the order of their ranks."""

    def __init__(self, settings: Settings, rules: Sequence[Rule]) -> None:
        self.history = PartitionHistory(settings.version, settings.skew_max_us)
        self._settings = settings
        self._rules = rules
        self._one_suffices = {rule.rule_id: rule.one_suffices for rule in rules}
        self._outcomes = {rule.rule_id: RuleOutcome(rule.rule_id) for rule in rules}
        self._checkers: dict[str, Checker] | None = None
        self._of_kind: dict[str, list[str]] = defaultdict(list)
        self._rank = HISTORY_RANK
        self._last: Fact | None = None

    def add(self, fact: Fact) -> None:
        """Take the next fact.

        Raises:
            ValueError: it belongs before the one that was taken last.
        """
        rank = RANK[fact.kind]
        if rank < self._rank:
            raise ValueError(f"facts are out of order: {fact.kind} after rank {self._rank}")
        self._rank = rank
        if rank == HISTORY_RANK:
            self.history.add(fact)
            return
        self._begin()
        if self._last is not None and fact[:PLACE] == self._last[:PLACE]:
            return  # the same line in two overlapping files
        self._last = fact
        fact = self._trusted(fact)
        self.history.stream(fact)
        for rule_id in self._of_kind.get(fact.kind, ()):
            self._ask(rule_id, fact)

    def finish(self) -> Iterator[RuleOutcome]:
        """All facts were given: what each rule found."""
        self._begin()
        for rule in self._rules:
            self._ask(rule.rule_id, None)
        yield from self._outcomes.values()

    def _trusted(self, fact: Fact) -> Fact:
        """A fetch without the leader epoch that it names, where its broker may not have compared the two: before 2.5
        fetch sessions forget it (KAFKA-9338), so that an answer may be given in a later epoch."""
        if fact.kind not in (a.FETCH, a.READ) or fact.leader_epoch is None or fact.broker_id is None:
            return fact
        version = parse_version(self._settings.version(fact.broker_id, fact.time_us))
        return fact if version is not None and version >= EPOCHS_COMPARED else fact._replace(leader_epoch=None)

    def _begin(self) -> None:
        if self._checkers is not None:
            return
        self._checkers = {}
        self.history.close()
        for rule in self._rules:
            try:
                self._checkers[rule.rule_id] = rule.make(self.history, self._settings)
            except Exception as error:
                self._failed(rule.rule_id, error)
                continue
            for kind in rule.kinds:
                self._of_kind[kind].append(rule.rule_id)

    def _ask(self, rule_id: str, fact: Fact | None) -> None:
        assert self._checkers is not None
        checker = self._checkers.get(rule_id)
        if checker is None:
            return
        outcome = self._outcomes[rule_id]
        try:
            cases: Iterable[Case] = checker.finish() if fact is None else checker.observe(fact)
            outcome.cases += [case.settled(self._one_suffices[rule_id]) for case in cases]
            outcome.checked = checker.checked
            if len(outcome.cases) >= 2 * CASES_MAX:
                outcome.left_out.update(cut(outcome.cases, _place))
        except Exception as error:
            self._failed(rule_id, error)

    def _failed(self, rule_id: str, error: Exception) -> None:
        """The rule is out of the audit of this partition: what it would have found is unknown."""
        outcome = self._outcomes[rule_id]
        outcome.error = f"{type(error).__name__}: {error}"
        outcome.cases, outcome.left_out = [], Counter()
        if self._checkers is not None:
            self._checkers.pop(rule_id, None)


def _place(case: Case) -> tuple[str, tuple[object, ...]]:
    return case.severity, (SEVERITIES[case.severity], case.offset_start or 0, case.time_us or 0, case.message)
