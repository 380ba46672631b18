"""A kind of incident: what it is, what shows it, and the function that finds it. Pure.

A signature names loggers and a pattern of the message's first line: lines that tell of an episode, and that no table of
silver has. The lake is asked once for all of them; lines of one signature, broker and key that follow each other within
`Signature.gap_s` are one episode (`Facts.remarks`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from pipelines.incidents.incident import Incident

#: Lines of one kind further apart than this are of two episodes, seconds.
GAP_S = 60


@dataclass(frozen=True)
class Signature:
    """One kind of line.

    Attributes:
        name: unique; what `Facts.remarked` asks for.
        loggers: simple names of the classes that log it, in releases that renamed it all names; empty: any.
        pattern: of the whole first line of the message (RE2). A group ``key`` tells episodes apart (a peer, a topic);
            a group ``partition`` is gathered, such as ``orders-4``.
        levels: at which it is logged.
        source: class and method in apache/kafka, with releases.
        gap_s: lines further apart are of two episodes.
        is_whole: the pattern is looked for in the whole message, stack trace included; ``^`` begins a line of it.
    """

    name: str
    loggers: tuple[str, ...]
    pattern: str
    source: str
    levels: tuple[str, ...] = ("WARN", "ERROR", "FATAL")
    gap_s: int = GAP_S
    is_whole: bool = False


#: Gives all episodes in facts, in any order; of a kind that is asked last, given the incidents of all other kinds, too.
Detect = Callable[..., Iterable[Incident]]


@dataclass(frozen=True)
class Kind:
    """One kind.

    Attributes:
        name: what `gold.incidents.kind` holds, in snake case.
        meaning: what an episode of it is, a sentence: documentation.
        source: where Kafka does, and logs, this: classes and methods, KIPs, JIRAs.
        episodes: finds them; `detect` gives them the name of the kind.
        signatures: lines that it needs and no table has.
        causes: kinds of incident that can bring it about; see `pipelines.incidents.story`.
        is_rest: it is asked last, and tells of what other kinds do not.
    """

    name: str
    meaning: str
    source: str
    episodes: Detect
    signatures: tuple[Signature, ...] = ()
    causes: tuple[str, ...] = ()
    is_rest: bool = False

    def detect(self, *facts: object) -> list[Incident]:
        """All episodes, in any order."""
        return [replace(incident, kind=self.name) for incident in self.episodes(*facts)]


def kind(
    meaning: str,
    source: str,
    signatures: tuple[Signature, ...] = (),
    causes: tuple[str, ...] = (),
    is_rest: bool = False,
) -> Callable[[Detect], Kind]:
    """Makes a kind of the function that finds its episodes: the function's name is the kind's."""
    return lambda episodes: Kind(episodes.__name__, meaning, source, episodes, signatures, causes, is_rest)
