"""A kind of incident: what it is, what shows it, and the function that finds it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from pipelines.incidents.incident import Incident
from pipelines.incidents.signatures import Signature

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
        causes: kinds of incident that can bring it about; see `pipelines.incidents.causes`.
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
