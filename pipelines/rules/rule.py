"""What a rule is, what it finds, and how it is asked.

A rule proves with what *is* in the logs. What is missing proves nothing: deleting lines may hide a violation or leave
a case open, it must never make one. So every rule states in its docstring why its evidence cannot be an effect of
missing lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Final, Literal, NamedTuple

from pipelines.rules.history import PartitionHistory
from schemas import audit_facts as a
from schemas.audit_facts import Fact

#: A guarantee is broken; something legal that is worth to know; a case that these logs leave open.
Severity = Literal["violation", "observation", "open"]
VIOLATION: Final = "violation"
OBSERVATION: Final = "observation"
OPEN: Final = "open"

Tier = Literal["T0", "T1", "T2", "T3"]

#: A finding shows at most so many lines.
EVIDENCE_MAX: Final = 20
#: So many independent witnesses make a violation, unless the rule says why one suffices.
WITNESSES_MIN: Final = 2

_REQUESTS: Final = frozenset({a.FETCH, a.READ, a.TIER_READ, a.OPERATION, a.ANSWER})
#: Kinds whose lines come from several loggers, which their names tell apart.
_LOGGERS: Final = frozenset({a.TRUNCATION, a.HIGH_WATERMARK, a.CHECKPOINT, a.TIER})


class Ref(NamedTuple):
    """Where a fact stands: a line by file and offset, or a request by broker, connection and correlation id.

    Attributes:
        source: what kind of fact it is; None where that is not told.
        derived: how it is known if no line tells it, as `Fact.derived`.
    """

    time_us: int
    broker_id: int | None
    file_id: str | None
    byte_offset: int | None
    connection: str | None
    correlation_id: int | None
    source: str | None = None
    derived: str | None = None

    @classmethod
    def of(cls, fact: Fact) -> Ref:
        """The place of a fact."""
        place = (fact.file_id, fact.byte_offset, fact.connection, fact.correlation_id)
        source = f"{fact.kind} {fact.name}" if fact.kind in _LOGGERS else fact.kind
        return cls(fact.time_us, fact.broker_id, *place, source, fact.derived)

    @property
    def witness(self) -> str | None:
        """Who says it: None if nobody does, since it is derived.

        Lines of one kind by one broker are one witness, as one grammar read them; so are a broker's entries in files of
        one kind. A request with its response is one, and another request another.
        """
        if self.derived is not None:
            return None
        who = f"broker {self.broker_id}, {self.source or 'line'}"
        return f"{who} {self.connection}#{self.correlation_id}" if self.source in _REQUESTS else who


def witnesses_of(refs: Iterable[Ref]) -> tuple[str, ...]:
    """Who says it, each once, ascending."""
    return tuple(sorted({name for ref in refs if (name := ref.witness) is not None}))


@dataclass(frozen=True)
class Case:
    """One finding of a rule in one partition.

    Attributes:
        rule_id: rule that found it.
        severity: violation, observation, or open: the logs do not decide it.
        message: what happened, in one or two sentences.
        evidence: the facts that show it; in time order once `settled`.
        leader_epoch: leader epoch that it is about.
        offset_start, offset_end: offsets that it is about, the end exclusive.
        time_us: when, as far as one instant says it.
        brokers: brokers that it is about, ascending.
        known_bug: JIRA of a bug of the running version with this signature.
        cause: short name of the cause, where the rule tells several apart.
        records: records or requests that it is about, where they are counted.
        witnesses: who says so, independently of each other; once `settled`, of all its evidence if nothing else is
            given.
    """

    rule_id: str
    severity: Severity
    message: str
    evidence: tuple[Ref, ...]
    leader_epoch: int | None = None
    offset_start: int | None = None
    offset_end: int | None = None
    time_us: int | None = None
    brokers: tuple[int, ...] = ()
    known_bug: str | None = None
    cause: str | None = None
    records: int | None = None
    witnesses: tuple[str, ...] = ()

    def settled(self, one_suffices: str | None = None) -> Case:
        """Evidence once each, in time order, brokers and witnesses ascending; of more than `EVIDENCE_MAX` lines the
        first are kept. A violation without enough witnesses is open."""
        refs = list(dict.fromkeys(self.evidence))[:EVIDENCE_MAX]
        order = sorted(refs, key=lambda ref: (ref.time_us, ref.broker_id or -1, ref.byte_offset or -1))
        witnesses = self.witnesses or witnesses_of(self.evidence)
        severity, message = weighed(self.severity, self.message, witnesses, one_suffices)
        return replace(
            self,
            severity=severity,
            message=message,
            evidence=tuple(order),
            brokers=tuple(sorted(set(self.brokers))),
            witnesses=witnesses,
        )


def weighed(
    severity: Severity, message: str, witnesses: Sequence[str], one_suffices: str | None
) -> tuple[Severity, str]:
    """Severity and message of a case: one misread line accuses nobody.

    Args:
        one_suffices: the rule's reason, if it has one, why a single witness is enough.
    """
    if severity != VIOLATION or one_suffices is not None or len(witnesses) >= WITNESSES_MIN:
        return severity, message
    return OPEN, f"{message} Open, as a single witness says so."


class Checker:
    """A rule at work on one partition: told of the facts that stream by, then asked for what is left.

    A later run goes on with what is `kept`, beside facts that come later (`pipelines.rules.partition_audit`). What was
    judged then has to be what it would be with all facts there at once, or the checker says that it is not.

    Attributes:
        checked: how many facts the rule has judged.
        is_final: nothing was found that depends on the order of the facts, or on others that stream by.
        awaits_history: a later line of the partition's history could change what was judged.
    """

    #: Attributes that a later run goes on with, beside the three.
    KEPT: ClassVar[tuple[str, ...]] = ()
    #: Attributes that follow from the history, or are as they are made wherever a later run may go on.
    MADE: ClassVar[tuple[str, ...]] = ()

    def __init__(self, history: PartitionHistory, settings: Settings) -> None:
        self.checked = 0
        self.is_final = True
        self.awaits_history = False
        self._history = history
        self._settings = settings

    def kept(self) -> dict[str, Any]:
        """What a later run goes on with.

        Raises:
            TypeError: the class does not say of each of its attributes what it is.
        """
        names = ("checked", "awaits_history", *self.KEPT)
        odd = vars(self).keys() - {*names, *self.MADE, "is_final", "_history", "_settings"}
        if odd:
            raise TypeError(f"{type(self).__qualname__}: neither KEPT nor MADE: {', '.join(sorted(odd))}")
        return {name: getattr(self, name) for name in names}

    def go_on(self, kept: Mapping[str, Any]) -> None:
        """Take what an earlier run `kept`; the history may have grown since."""
        for name, value in kept.items():
            setattr(self, name, value)

    def stands(self) -> bool:
        """Whether what was judged is so with the history as it is now, and whatever facts come later."""
        return self.is_final

    def observe(self, fact: Fact) -> Iterable[Case]:
        """Look at a fact of one of the rule's kinds."""
        return ()

    def finish(self) -> Iterable[Case]:
        """The facts of the partition are over."""
        return ()

    def _severity(self, *facts: Fact, one_run: bool = False) -> Severity | None:
        """Of a case that facts prove together if they are of one life of the topic; None if they surely are not.

        Args:
            one_run: as of `pipelines.rules.proofs.lives.Lives.one_life`.
        """
        # Ids are known as of now: the order of connections decides which.
        self.is_final = False
        shown = self._history.lives.one_life(*facts, one_run=one_run)
        return OPEN if shown is None else VIOLATION if shown else None


def unless_anew(severity: Severity) -> str:
    """What a case's message says beside, where no id shows one life."""
    return "; open, as no topic id shows that the topic was not created anew between" if severity == OPEN else ""


@dataclass(frozen=True)
class Settings:
    """What rules are told beside the facts.

    Attributes:
        min_insync_replicas: of the partition by the lines that are there: (broker, instant) to value.
        version: Kafka version by (broker, instant), None where unknown; it changes with an upgrade.
        skew_max_us: clocks of two brokers are taken to differ by no more.
        blur_us: how far two instants of one time may lie apart, of (broker, instant): a second where lines tell whole
            seconds (`pipelines.rules.facts.coarse`), else 0.
        unclean_allowed: unclean.leader.election.enable of the partition as a broker knew it last; None if unknown.
        deletable: whether topics can be deleted, and so be created anew (delete.topic.enable).
        compacted: whether the partition's log is compacted, or was; None if no line tells its cleanup.policy.
    """

    min_insync_replicas: Callable[[int, int], int | None] = lambda broker_id, time_us: None
    version: Callable[[int, int], str | None] = lambda broker_id, time_us: None
    skew_max_us: int = 1_000_000
    blur_us: Callable[[int, int], int] = lambda broker_id, time_us: 0
    unclean_allowed: Callable[[int], bool | None] = lambda broker_id: None
    compacted: bool | None = None
    deletable: bool = True


@dataclass(frozen=True)
class Rule:
    """One guarantee and how it is checked.

    Attributes:
        rule_id: its public name.
        guarantee: what Kafka promises, in one sentence.
        source: where it promises that: KIP, documentation, TLA+ property, class and method.
        versions: Kafka versions that it holds for.
        tier: evidence that it needs at least.
        needs: in words, what has to be in the logs.
        proof: why a case cannot be an effect of missing lines.
        shows: what its cases are, by severity.
        make: a checker for one partition; by default one that looks at nothing, as its cases come from elsewhere.
        kinds: kinds of streaming facts that it looks at; the history is given to every rule.
        suspects_only: its streaming facts are those that look wrong: that there is none is no lack of evidence.
        one_suffices: why one witness makes a violation; None: it takes `WITNESSES_MIN`.
        compares_times: it judges durations: where times are whole seconds it judges nothing.
    """

    rule_id: str
    guarantee: str
    source: str
    versions: str
    tier: Tier
    needs: str
    proof: str
    shows: tuple[tuple[Severity, str], ...]
    make: Callable[[PartitionHistory, Settings], Checker] = Checker
    kinds: frozenset[str] = frozenset()
    suspects_only: bool = False
    one_suffices: str | None = None
    compares_times: bool = False


#: Judges a partition by its history alone: how much it looked at, and the cases.
Judge = Callable[[PartitionHistory, Settings], tuple[int, list[Case]]]


class _OfHistory(Checker):
    MADE = ("_judge",)

    def __init__(self, history: PartitionHistory, settings: Settings, judge: Judge) -> None:
        super().__init__(history, settings)
        self._judge = judge

    def finish(self) -> Iterable[Case]:
        self.checked, cases = self._judge(self._history, self._settings)
        return cases


def of_history(judge: Judge) -> Callable[[PartitionHistory, Settings], Checker]:
    """A checker that looks at the history alone."""
    return partial(_OfHistory, judge=judge)
