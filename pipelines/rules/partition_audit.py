"""All rules over one partition: facts in, cases out. Pure.

A rule that fails does not stop the others and is never silent: its exception becomes a result.

**From run to run.** An audit is frozen with the facts up to a window, and a later run resumes it with later facts.
Facts come in the order of their ranks, so answers of the first run were judged before fetches of the second were seen.
The result equals the result of one run, because later facts do not change what was judged. If one might, a checker
reports it (`pipelines.rules.rule.Checker.stands`), and the whole partition is judged again (`CannotGoOn`). The same
holds if a fact comes before one that was judged, and with facts of files or of TRACE lines.

**Twice.** Where one broker alone logs what others would log too, the partition is judged a second time without that
line. A violation with only one of the two results is open (`pipelines.rules.proofs.lone_lines`). The same is done if a
log was deleted by its broker's line and the broker serves it later.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from highwater.pipelines.base.freeze import Freezer
from highwater.pipelines.kafka.versions import rule_of
from highwater.pipelines.rules.facts.columns import BY_CONNECTION, BY_OFFSET
from highwater.pipelines.rules.guarantees.error_yet_committed import Answered
from highwater.pipelines.rules.guarantees.isr import Join
from highwater.pipelines.rules.history import PLACE, FactHistory
from highwater.pipelines.rules.proofs.fetch_chain import FetchChain, FetchChains
from highwater.pipelines.rules.proofs.lone_lines import Deletions, LoneLines, lone_lines
from highwater.pipelines.rules.rule import OPEN, VIOLATION, Case, Checker, Ref, Rule, Settings
from highwater.pipelines.rules.worst import CASES_MAX, SEVERITIES, cut
from highwater.schemas import audit_facts as a
from highwater.schemas.audit_facts import HISTORY_RANK, RANK, Fact

#: Of other facts (files, TRACE lines, reads past their limit) a partition is judged whole in each run.
GONE_ON_WITH: Final = frozenset(
    {
        *(a.LEADERSHIP, a.ISR_CHANGE, a.PARTITION_STATE, a.TRUNCATION, a.LOADED, a.ISR_REPLAY),
        *(a.FETCH, a.OPERATION, a.ANSWER),
    }
)
#: All that a frozen audit consists of.
FREEZER: Final = Freezer(Fact, Case, Ref, FetchChain, FetchChains, Answered, Join)


#: Text for a line that one broker alone has, by its role.
_SAID: Final = {"leader_start": "that it led in such an epoch"}
#: Text for a line that later lines contradict, by its role.
_CONTRADICTED: Final = {"stopped": "that its log was deleted, and later lines or files have that log"}


@dataclass
class RuleOutcome:
    """The result of one rule for one partition."""

    rule_id: str
    checked: int = 0  #: facts that it judged
    cases: list[Case] = field(default_factory=list)  #: its cases, the worst ones if there are many
    left_out: Counter[str] = field(default_factory=Counter)  #: number of further cases, by severity
    error: str | None = None  #: its exception, if it failed; its cases are then dropped


class CannotGoOn(Exception):
    """Raised if a partition must be judged again over all its facts. The message gives the reason."""


class PartitionAudit:
    """Feeds one partition's facts to the rules. Facts arrive in the order of their ranks.

    Attributes:
        odd: a kind of fact that forces judging the whole partition. None if there is none.
        held: facts that the earlier audit did not get, in order. Add them to this audit.

    Args:
        frozen: state of an earlier audit by the same rules. Only later facts may be added then.
        twice: judge a second time without lines that only one broker has and others would log too.

    Raises:
        ValueError: `frozen` was not made by `freeze`.
    """

    def __init__(
        self, settings: Settings, rules: Sequence[Rule], frozen: bytes | None = None, twice: bool = True
    ) -> None:
        self.history = FactHistory(
            settings.version, settings.skew_max_us, settings.blur_us, settings.is_running, settings.client_free_files
        )
        self._settings = settings
        self._rules = rules
        self._outcomes = {rule.rule_id: RuleOutcome(rule.rule_id) for rule in rules}
        self._checkers: dict[str, Checker] = {}
        self._has_begun = False
        self._of_kind: dict[str, list[str]] = defaultdict(list)
        self._rank = HISTORY_RANK
        self._last: Fact | None = None
        self._answer_offset = -1  # the highest offset of answers so far, and of answers that an earlier run judged
        self._judged_offset = -1
        self.odd: str | None = None
        self._earlier = None if frozen is None else FREEZER.thaw(frozen, ())
        self.held: list[Fact] = [] if self._earlier is None else self._earlier["held"]
        self._lines: list[Fact] = []
        self._lone = LoneLines()
        self._second: PartitionAudit | None = None
        self._deletions: Deletions | None = None
        self._undeleted: PartitionAudit | None = None
        self._twice = twice

    def add(self, fact: Fact) -> None:
        """Add the next fact.

        Raises:
            ValueError: the fact belongs before the previous one.
            CannotGoOn: an earlier run should have had the fact, or facts of its kind cannot be added to a resumed
                audit.
        """
        rank = RANK[fact.kind]
        if rank < self._rank:
            raise ValueError(f"facts are out of order: {fact.kind} after rank {self._rank}")
        self._rank = rank
        if fact.kind not in GONE_ON_WITH:
            self.odd = fact.kind
            if self._earlier is not None:
                raise CannotGoOn(f"it has a fact of kind {fact.kind}")
        if rank == HISTORY_RANK:
            if self._earlier is None:
                self.history.add(fact)
            else:
                self._lines.append(fact)
            return
        self._begin()
        if self._second is not None and fact.topic_id not in self._lone.topic_ids:
            self._second.add(fact)
        if self._deletions is not None:
            self._watch(self._deletions, fact)
        if self._last is not None and fact[:PLACE] == self._last[:PLACE]:
            return  # the same line in two overlapping files
        self._last = fact
        if self._earlier is not None and not self._is_next(fact):
            raise CannotGoOn(f"a fact of kind {fact.kind} comes before what was judged")
        if fact.kind == a.ANSWER and fact.offset is not None:
            self._answer_offset = max(self._answer_offset, fact.offset)
        fact = self._drop_untrusted_epoch(fact)
        self.history.stream(fact)
        if fact.kind == a.FETCH and self.history.chain.fact is not fact:
            return  # it has no place on a connection
        for rule_id in self._of_kind.get(fact.kind, ()):
            self._ask(rule_id, fact)

    def finish(self) -> list[RuleOutcome]:
        """Return what each rule found, after all facts were added.

        Raises:
            CannotGoOn: a resumed audit whose result depends on seeing all facts at once.
        """
        self._begin()
        for rule in self._rules:
            self._ask(rule.rule_id, None)
        for rule_id, checker in self._checkers.items():
            self._outcomes[rule_id].checked = checker.checked
        if self._earlier is not None:
            self._require_settled()
        if self._undeleted is not None and self._deletions is not None and self._deletions.contradicted:
            self._compare(self._undeleted.finish(), self._deletions.contradicted)
        elif self._second is not None:
            self._compare(self._second.finish(), self._lone.contradicted or self._lone.lines)
        return list(self._outcomes.values())

    @property
    def unsettled(self) -> str | None:
        """Return why no later run can resume from this state. None if one can."""
        if self.odd is not None:
            return f"it has facts of kind {self.odd}"
        failed = [outcome.rule_id for outcome in self._outcomes.values() if outcome.error is not None]
        failed += [rule_id for rule_id, checker in self._checkers.items() if not checker.stands()]
        return f"later facts may change what {failed[0]} judged" if failed else None

    def freeze(self, held: Sequence[Fact] = ()) -> bytes:
        """Serialize the state for a later audit. Call it before `finish`.

        Args:
            held: facts that were not added, and that the later audit must add.

        Raises:
            CannotGoOn: the partition must be judged whole.
        """
        self._begin()
        self._require_settled()
        self.history.chains.forget()
        facts = [fact for kind, facts in self.history.facts.items() for fact in facts]
        outcomes = {rule_id: (outcome.cases, dict(outcome.left_out)) for rule_id, outcome in self._outcomes.items()}
        document = {
            "held": list(held),
            "lines": sorted(facts, key=place),
            "history": self.history.kept(),
            "outcomes": outcomes,
            "checkers": {rule_id: checker.kept() for rule_id, checker in self._checkers.items()},
            "answer_offset": self._answer_offset,
        }
        return FREEZER.freeze(document, ())

    def _require_settled(self) -> None:
        if (why := self.unsettled) is not None:
            raise CannotGoOn(why)

    def _is_next(self, fact: Fact) -> bool:
        """Return True if a fact comes after the judged facts of its kind or connection."""
        if fact.kind == a.FETCH:
            return self.history.chains.goes_on(fact)
        return fact.kind != a.ANSWER or fact.offset is None or fact.offset > self._judged_offset

    def _drop_untrusted_epoch(self, fact: Fact) -> Fact:
        """Return the fact, without its leader epoch if the broker may not have compared it.

        Fetch sessions forget the epoch before 2.5 (KAFKA-9338), so the answer may come from a later epoch.
        """
        if fact.kind not in (a.FETCH, a.READ) or fact.leader_epoch is None or fact.broker_id is None:
            return fact
        version = self._settings.version(fact.broker_id, fact.time_us)
        compared = rule_of(version, lambda rules: rules.sessions_keep_leader_epochs) is True
        return fact if compared else fact._replace(leader_epoch=None)

    def _begin(self) -> None:
        if self._has_begun:
            return
        self._has_begun = True
        has_grown = any(map(_is_streamed, self._lines))
        if self._earlier is not None:
            self._add_lines(self._earlier["lines"], has_grown)
        if self._twice:
            self._judge_twice(lone_lines(self.history))
            self._watch_deletions()
        self.history.close()
        if self._earlier is not None:
            self.history.go_on(self._earlier["history"])
        for rule in self._rules:
            try:
                self._checkers[rule.rule_id] = rule.make(self.history, self._settings)
            except Exception as error:
                self._drop_rule(rule.rule_id, error)
                continue
            for kind in rule.kinds:
                self._of_kind[kind].append(rule.rule_id)
        if self._earlier is not None:
            self._resume(self._earlier, has_grown)

    def _judge_twice(self, lone: LoneLines) -> None:
        if not lone.lines:
            return
        self.odd = "line that one broker alone has"
        if self._earlier is not None:
            raise CannotGoOn(f"it has a {self.odd}")
        self._lone = lone
        self._second = self._make_without(lone.lines)

    def _make_without(self, lines: Iterable[Fact]) -> PartitionAudit:
        """Return an audit of the same facts without `lines`."""
        other = PartitionAudit(self._settings, self._rules, twice=False)
        left_out = set(lines)
        for facts in self.history.facts.values():
            for fact in facts:
                if fact not in left_out:
                    other.add(fact)
        return other

    def _watch_deletions(self) -> None:
        deletions = Deletions(self.history)
        if deletions.lines:
            self._deletions = deletions
            if self._earlier is None:
                self._undeleted = self._make_without([*self._lone.lines, *deletions.lines])

    def _watch(self, deletions: Deletions, fact: Fact) -> None:
        deletions.see(fact)
        if self._undeleted is not None and fact.topic_id not in self._lone.topic_ids:
            self._undeleted.add(fact)
        if deletions.contradicted:
            self.odd = "log that is served after its deletion"
            if self._earlier is not None:
                raise CannotGoOn(f"it has a {self.odd}")

    def _compare(self, outcomes: Iterable[RuleOutcome], lines: Sequence[Fact]) -> None:
        """Mark violations as undecided that depend on lines which do not count by themselves.

        Args:
            outcomes: results without these lines.
            lines: lines of a single broker that other brokers would log too.
        """
        for other in outcomes:
            known = self._outcomes[other.rule_id]
            known.error = known.error or other.error
            with_them, without = _collect_violations(known), _collect_violations(other)
            known.cases = [
                self._open(case, lines[0]) if case.message in with_them - without else case for case in known.cases
            ]
            known.cases += [self._open(case, lines[0]) for case in other.cases if case.message in without - with_them]

    def _open(self, case: Case, line: Fact) -> Case:
        is_contradicted = line in self._lone.contradicted or (
            self._deletions is not None and line in self._deletions.contradicted
        )
        if is_contradicted:
            said = _CONTRADICTED.get(
                line.name or "", "that the topic was re-created, and later lines are of the old one"
            )
            message = f"{case.message} Open, as broker {line.broker_id} says {said}."
        else:
            said = _SAID.get(line.name or "", "that the topic was deleted or re-created")
            message = f"{case.message} Open, as broker {line.broker_id} says, and no other broker, {said}."
        return replace(case, severity=OPEN, message=message, evidence=(Ref.of(line), *case.evidence)).settled()

    def _add_lines(self, known: Sequence[Fact], has_grown: bool) -> None:
        for fact in sorted([*known, *self._lines], key=place):
            self.history.add(fact)
        if has_grown:
            before = FactHistory(self._settings.version, self._settings.skew_max_us, self._settings.blur_us)
            for fact in known:
                before.add(fact)
            if not self.history.extends(before):
                raise CannotGoOn("later lines contradict what was judged")

    def _resume(self, earlier: Mapping[str, Any], has_grown: bool) -> None:
        self._answer_offset = self._judged_offset = earlier["answer_offset"]
        for rule_id, (cases, left_out) in earlier["outcomes"].items():
            self._outcomes[rule_id] = RuleOutcome(rule_id, 0, cases, Counter(left_out))
        for rule_id, checker in self._checkers.items():
            checker.go_on(earlier["checkers"][rule_id])
            if has_grown and checker.awaits_history:
                raise CannotGoOn(f"{rule_id} awaited later lines")
        self._require_settled()

    def _ask(self, rule_id: str, fact: Fact | None) -> None:
        checker = self._checkers.get(rule_id)
        if checker is None:
            return
        outcome = self._outcomes[rule_id]
        try:
            for case in (checker.finish() if fact is None else checker.observe(fact)) or ():
                outcome.cases.append(self._note_strangers(replace(case, rule_id=rule_id)).settled())
            if len(outcome.cases) >= 2 * CASES_MAX:
                outcome.left_out.update(cut(outcome.cases, _place))
        except Exception as error:
            self._drop_rule(rule_id, error)

    def _note_strangers(self, case: Case) -> Case:
        """Add a note to an undecided case if its brokers are probably of two clusters."""
        groups = [group for group in self.history.strangers if group & set(case.brokers)]
        if case.severity != OPEN or len(groups) < 2:
            return case
        first, *others = (", ".join(map(str, sorted(group))) for group in groups)
        why = (
            f"No line of leaders or ISRs by brokers {first} names one of {' or '.join(others)}, or the other way: "
            "these are probably of two clusters; then name the folder of each in ingest.clusters"
        )
        return replace(case, message=f"{case.message.removesuffix('.')}. {why}.")

    def _drop_rule(self, rule_id: str, error: Exception) -> None:
        """Record a rule's exception and drop its cases. The rule gets no more facts of this partition."""
        outcome = self._outcomes[rule_id]
        outcome.error = f"{type(error).__name__}: {error}"
        outcome.cases, outcome.left_out = [], Counter()
        checker = self._checkers.pop(rule_id, None)
        outcome.checked = checker.checked if checker is not None else 0


def place(fact: Fact) -> tuple[Any, ...]:
    """Return the sort key of a fact within its partition, equal to `pipelines.rules.facts.columns.ORDER`."""
    by_offset = fact.offset if fact.kind in BY_OFFSET else None
    connection = (fact.broker_id, fact.connection, fact.correlation_id) if fact.kind in BY_CONNECTION else (None,) * 3
    line = (fact.time_us, fact.broker_id, fact.byte_offset, fact.offset, fact.kind, fact.name, fact.replica_id)
    values = (RANK[fact.kind], by_offset, *connection, int(fact.kind != a.BATCH), *line, fact.file_id)
    return tuple((value is not None, value) for value in values)


def _is_streamed(fact: Fact) -> bool:
    """Return True if streaming checks read this fact, not only `finish()`."""
    return fact.kind not in (a.ISR_REPLAY, a.LOADED) and (fact.kind, fact.name) != (a.TRUNCATION, a.REPLAYED)


def _collect_violations(outcome: RuleOutcome) -> set[str]:
    return {case.message for case in outcome.cases if case.severity == VIOLATION}


def _place(case: Case) -> tuple[str, tuple[object, ...]]:
    return case.severity, (SEVERITIES[case.severity], case.offset_start or 0, case.time_us or 0, case.message)
