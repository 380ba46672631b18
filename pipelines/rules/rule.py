"""The parts of a rule: its facts, its cases, and how the audit runs it.

A rule proves with lines that *are* in the logs. Missing lines prove nothing: deleting lines may hide a violation or
leave a case open, and must never make one. So every rule states in its docstring why its evidence cannot be an effect
of missing lines.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, Final, Literal, NamedTuple

from highwater.pipelines.rules.history import FactHistory
from highwater.pipelines.rules.texts import TEXTS, RuleTexts
from highwater.schemas import audit_facts as a
from highwater.schemas.audit_facts import Fact

#: A guarantee is broken; something legal that is worth to know; a case that these logs leave open.
Severity = Literal["violation", "observation", "open"]
VIOLATION: Final = "violation"
OBSERVATION: Final = "observation"
OPEN: Final = "open"

#: Lines that a finding shows, at most.
EVIDENCE_MAX: Final = 20
#: Independent witnesses that a violation needs, at least.
WITNESSES_MIN: Final = 2

_REQUESTS: Final = frozenset({a.FETCH, a.READ, a.TIER_READ, a.OPERATION, a.ANSWER})
#: Kinds whose lines come from several loggers, which their names distinguish.
_LOGGERS: Final = frozenset({a.TRUNCATION, a.HIGH_WATERMARK, a.CHECKPOINT, a.TIER})


class Ref(NamedTuple):
    """Location of a fact: a line by file and offset, or a request by broker, connection and correlation id."""

    time_us: int
    broker_id: int | None
    file_id: str | None
    byte_offset: int | None
    connection: str | None
    correlation_id: int | None
    source: str | None = None  #: kind of the fact; None if unknown
    derived: str | None = None  #: how it was derived, as `Fact.derived`; None for a logged fact

    @classmethod
    def of(cls, fact: Fact | Ref) -> Ref:
        """Return the location of a fact."""
        if isinstance(fact, Ref):
            return fact
        place = (fact.file_id, fact.byte_offset, fact.connection, fact.correlation_id)
        source = f"{fact.kind} {fact.name}" if fact.kind in _LOGGERS else fact.kind
        return cls(fact.time_us, fact.broker_id, *place, source, fact.derived)

    @property
    def witness(self) -> str | None:
        """Return a name of the independent source of the fact. None for a derived fact.

        All lines of one kind by one broker are one source, because one grammar read them. So are a broker's entries in
        files of one kind. Each request, with its response, is its own source.
        """
        if self.derived is not None:
            return None
        who = f"broker {self.broker_id}, {self.source or 'line'}"
        return f"{who} {self.connection}#{self.correlation_id}" if self.source in _REQUESTS else who


def witnesses_of(evidence: Iterable[Fact | Ref]) -> tuple[str, ...]:
    """Return the independent sources of evidence, sorted."""
    return tuple(sorted({name for ref in map(Ref.of, evidence) if (name := ref.witness) is not None}))


def brokers_of(facts: Iterable[Fact]) -> tuple[int, ...]:
    """Return the ids of the brokers that logged the facts, sorted."""
    return tuple(sorted({fact.broker_id for fact in facts if fact.broker_id is not None}))


@dataclass(frozen=True)
class Case:
    """A possible violation that a rule found in one partition."""

    severity: Severity  #: violation, observation, or open: the logs do not decide it
    message: str  #: what happened, in one or two sentences
    #: the facts that show it; once `settled`, their locations in time order
    evidence: tuple[Fact | Ref, ...]
    leader_epoch: int | None = None  #: leader epoch that it is about
    #: offset_start, offset_end: offsets that it is about, the end exclusive
    offset_start: int | None = None
    offset_end: int | None = None
    time_us: int | None = None  #: when, if one time can be given
    brokers: tuple[int, ...] = ()  #: brokers that it is about, ascending
    known_bug: str | None = None  #: JIRA of a bug of the running version with this signature
    cause: str | None = None  #: short name of the cause, where the rule distinguishes several
    records: int | None = None  #: records or requests that it is about, where they are counted
    #: independent witnesses; once `settled`, of all its evidence unless given
    witnesses: tuple[str, ...] = ()
    rule_id: str = ""  #: rule that found it; the audit fills it

    def settled(self) -> Case:
        """Return the case with evidence in time order, and brokers and sources sorted.

        At most `EVIDENCE_MAX` lines are kept. A violation with too few independent sources becomes undecided.
        """
        refs = list(dict.fromkeys(map(Ref.of, self.evidence)))[:EVIDENCE_MAX]
        order = sorted(refs, key=lambda ref: (ref.time_us, ref.broker_id or -1, ref.byte_offset or -1))
        witnesses = self.witnesses or witnesses_of(self.evidence)
        severity, message = self.severity, self.message
        if severity == VIOLATION and len(witnesses) < WITNESSES_MIN:
            # One misread line proves nothing.
            severity, message = OPEN, f"{message} Open, as a single witness says so."
        return replace(
            self,
            severity=severity,
            message=message,
            evidence=tuple(order),
            brokers=tuple(sorted(set(self.brokers))),
            witnesses=witnesses,
        )


#: Metadata of a `Checker` field that a later run resumes. Other fields start as they are declared.
KEPT: Final = {"is_kept": True}


@dataclass
class Checker:
    """Applies one rule to one partition: `observe` gets streaming facts, then `finish` is called.

    A later run resumes from the `kept` state and adds later facts (`pipelines.rules.partition_audit`). Its result must
    equal the result of one run over all facts. Otherwise `stands` returns False.
    """

    _history: FactHistory
    _settings: Settings
    checked: int = field(default=0, metadata=KEPT)  #: how many facts the rule has judged
    is_final: bool = True  #: no result depends on the order of the facts, or on other streaming facts
    #: a later line of the partition's history could change what was judged
    awaits_history: bool = field(default=False, metadata=KEPT)

    def kept(self) -> dict[str, Any]:
        """Return the state from which a later run resumes.

        Raises:
            TypeError: the checker has an undeclared field.
        """
        if odd := vars(self).keys() - {known.name for known in fields(self)}:
            raise TypeError(f"{type(self).__qualname__} does not declare {', '.join(sorted(odd))}")
        return {known.name: getattr(self, known.name) for known in fields(self) if known.metadata == KEPT}

    def go_on(self, kept: Mapping[str, Any]) -> None:
        """Restore the `kept` state of an earlier run. The history may have more facts now."""
        for name, value in kept.items():
            setattr(self, name, value)

    def stands(self) -> bool:
        """Return True if the results so far are valid whatever facts come later."""
        return self.is_final

    def observe(self, fact: Fact) -> Iterable[Case] | None:
        """Check a fact of the rule's `kinds`. Return cases, or None if the fact is only stored."""
        return None

    def finish(self) -> Iterable[Case]:
        """Return the remaining cases, after the last fact."""
        return ()

    def _severity(self, *facts: Fact, one_run: bool = False) -> Severity | None:
        """Return the severity of a case whose facts must be of one incarnation of the topic. None if they are not.

        Args:
            one_run: see `pipelines.rules.proofs.lives.Lives.one_life`.
        """
        # Ids are known as of now: the order of connections decides which.
        self.is_final = False
        shown = self._history.lives.one_life(*facts, one_run=one_run)
        return OPEN if shown is None else VIOLATION if shown else None


def unless_anew(severity: Severity) -> str:
    """Return the text appended to an undecided case: no topic id excludes a re-creation. Empty for other severities."""
    return "; open, as no topic id shows that the topic was not re-created between" if severity == OPEN else ""


@dataclass(frozen=True)
class Settings:
    """Configuration and versions that rules can query."""

    #: of the partition by the lines that are there: (broker, instant) to value
    min_insync_replicas: Callable[[int, int], int | None] = lambda broker_id, time_us: None
    #: Kafka version by (broker, instant), None where unknown; it changes with an upgrade
    version: Callable[[int, int], str | None] = lambda broker_id, time_us: None
    skew_max_us: int = 1_000_000  #: clocks of two brokers are taken to differ by no more
    #: largest distance of two stamps of one time, by (broker, time): a second where lines have whole seconds
    #: (`pipelines.rules.facts.columns`), else 0
    blur_us: Callable[[int, int], int] = lambda broker_id, time_us: 0
    #: True if a broker surely runs on after a time, by (broker, time)
    is_running: Callable[[int, int], bool] = lambda broker_id, time_us: False
    client_free_files: Collection[str] = ()  #: ids of files in which no client can write
    #: unclean.leader.election.enable of the partition as a broker knew it last; None if unknown
    unclean_allowed: Callable[[int], bool | None] = lambda broker_id: None
    #: True if the partition's log is compacted, or was; None if no line shows its cleanup.policy
    compacted: bool | None = None
    deletable: bool = True  #: topics can be deleted, and so be re-created (delete.topic.enable)

    def version_of(self, fact: Fact) -> str | None:
        """Return the Kafka version of the fact's broker at that time. None if unknown."""
        return None if fact.broker_id is None else self.version(fact.broker_id, fact.time_us)


@dataclass(frozen=True)
class Rule:
    """One guarantee and how it is checked. Its `texts` describe it."""

    rule_id: str  #: its public name
    #: a checker for one partition; by default one without facts, for cases from elsewhere
    make: Callable[[FactHistory, Settings], Checker] = Checker
    kinds: Collection[str] = ()  #: kinds of streaming facts that it reads; every rule gets the history
    #: its streaming facts are only suspect ones: without any, evidence is not missing
    suspects_only: bool = False
    compares_times: bool = False  #: it judges durations, so it does not run on times in whole seconds

    @property
    def texts(self) -> RuleTexts:
        """Return the rule's texts."""
        return TEXTS[self.rule_id]


#: Judges a partition by its history alone: how much it looked at, and the cases.
Judge = Callable[[FactHistory, Settings], tuple[int, list[Case]]]


@dataclass
class _OfHistory(Checker):
    judge: Judge = field(kw_only=True)

    def finish(self) -> Iterable[Case]:
        self.checked, cases = self.judge(self._history, self._settings)
        return cases


def of_history(judge: Judge) -> Callable[[FactHistory, Settings], Checker]:
    """Return a factory of checkers that only use the history, not streaming facts."""
    return partial(_OfHistory, judge=judge)
