"""A kind of incident: its meaning, its evidence, and the function that detects it. Pure.

A signature consists of loggers and a pattern for the first line of a message. It matches lines that belong to an
episode and that no table of silver contains. One query matches all signatures. Consecutive lines of one signature,
broker and key within `Signature.gap_s` are one episode (`Facts.remarks`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from highwater.pipelines.incidents.grounds import GROUNDS, OF_TEXTS, Ground
from highwater.pipelines.incidents.incident import LoggedIncident

#: Lines of one kind further apart than this are of two episodes, seconds.
GAP_S = 60
#: Kinds that end a process or keep it from its work. A kind is caused only by kinds that precede it.
FAILED = ("broker_out_of_memory", "broker_out_of_files", "log_directory_failed", "start_failed", "broker_halted")
#: Kinds in which a broker is away or does not answer, in the same order. Each kind that follows from an absence has all
#: of them as causes.
ABSENT = (
    *FAILED,
    *("broker_died", "broker_stopped", "broker_stalled", "logs_end_early", "broker_fenced", "session_expired"),
)
#: Kinds in which no controller decides: nothing is elected and no ISR changes.
UNDECIDED = ("quorum_unreachable", "quorum_lost", "controller_renounced", "controller_changed")
#: Kinds in which a follower does not fetch, or is not served.
NOT_FETCHED = (
    "brokers_rejected",
    *("fetcher_died", "partitions_not_fetched", "high_watermark_below_start", "leader_unreachable", "fetch_errors"),
)
#: Kinds about nodes that others could not reach. `LoggedIncident.by` has these nodes.
UNREACHED = ("leader_unreachable", "quorum_unreachable")
#: Kinds that keep a replica out of the in-sync set.
LAGGING = (*ABSENT, *NOT_FETCHED, "slow_replica", "zombie_leader")
#: Kinds that show more of the same episode, by kind: texts of a kind belong to them, too.
SHOWN_BY = {
    "start_failed": ("broker_halted",),
    "session_expired": ("broker_stalled",),
    "broker_fenced": ("broker_died", "broker_stopped"),
    "broker_died": ("broker_halted",),
    "quorum_unreachable": ("broker_fenced", "heartbeats_not_sent"),
}


def preceding(name: str, order: tuple[str, ...] = ABSENT) -> tuple[str, ...]:
    """Return the kinds of incident before a kind in `order`. In that order each kind can only cause later ones."""
    return order[: order.index(name)]


@dataclass(frozen=True)
class Signature:
    """A pattern of log lines, with the loggers and levels at which they are logged."""

    name: str  #: unique; what `Facts.remarked` asks for
    #: simple names of the classes that log it, in releases that renamed it all names; empty: any
    loggers: tuple[str, ...]
    #: of the whole first line of the message (RE2). A group ``key`` separates episodes (a peer, a topic); a group
    #: ``partition`` is gathered, such as ``orders-4``
    pattern: str
    source: str  #: class and method in apache/kafka, with releases
    levels: tuple[str, ...] = ("WARN", "ERROR", "FATAL")  #: at which it is logged
    gap_s: int = GAP_S  #: lines further apart are of two episodes
    #: the pattern is looked for in the whole message, stack trace included; ``^`` begins a line of it
    is_whole: bool = False


#: Gives all episodes in facts, in any order; of a kind that is asked last, given the incidents of all other kinds, too.
Detect = Callable[..., Iterable[LoggedIncident]]
#: Returns one incident of several that have one cause and follow each other.
Merge = Callable[[Sequence[LoggedIncident]], LoggedIncident]


@dataclass(frozen=True)
class Kind:
    """A kind of incident."""

    name: str  #: what `gold.incidents.kind` holds, in snake case
    meaning: str  #: what an episode of it is, a sentence: documentation
    source: str  #: where Kafka does, and logs, this: classes and methods, KIPs, JIRAs
    episodes: Detect  #: finds them; `detect` gives them the name of the kind
    signatures: tuple[Signature, ...] = ()  #: lines that it needs and no table has
    causes: tuple[str, ...] = ()  #: kinds of incident that can bring it about; see `pipelines.incidents.story`
    is_rest: bool = False  #: it is detected last, from what no other kind reports
    #: kinds that show more of the same episode: an incident of this kind is left out if one of them covers it
    yields_to: tuple[str, ...] = ()
    merge: Merge | None = None  #: None: incidents of one cause are never merged

    @property
    def ground(self) -> Ground:
        """Return what is enough to report this kind of incident, and what never is."""
        return GROUNDS.get(self.name, OF_TEXTS)

    def detect(self, *facts: object) -> list[LoggedIncident]:
        """Return all incidents of this kind that `facts` show, in any order."""
        return [replace(incident, kind=self.name) for incident in self.episodes(*facts)]


def kinds_by_signature(kinds: Iterable[Kind]) -> dict[str, list[str]]:
    """Return the names of the kinds of incident that use each pattern of log lines, by name of the pattern."""
    names: dict[str, list[str]] = {}
    for one in kinds:
        for signature in one.signatures:
            names.setdefault(signature.name, []).append(one.name)
    return names


def kind(
    meaning: str,
    source: str,
    signatures: tuple[Signature, ...] = (),
    causes: tuple[str, ...] = (),
    is_rest: bool = False,
    yields_to: tuple[str, ...] = (),
    merge: Merge | None = None,
) -> Callable[[Detect], Kind]:
    """Return a decorator that turns a function that detects incidents into a `Kind` with its name and these fields."""
    return lambda episodes: Kind(
        episodes.__name__, meaning, source, episodes, signatures, causes, is_rest, yields_to, merge
    )
