"""A kind of incident: what it is, what shows it, and the function that finds it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pipelines.incidents.incident import Incident
from pipelines.incidents.signatures import Signature


@dataclass(frozen=True)
class Kind:
    """One kind, a module of `pipelines.incidents.kinds`.

    Attributes:
        name: what `gold.incidents.kind` holds, in snake case.
        meaning: what an episode of it is, a sentence: documentation.
        source: where Kafka does, and logs, this: classes and methods, KIPs, JIRAs.
        detect: finds all episodes in facts, in any order.
        is_rest: it is asked last, and given the incidents of all other kinds: it tells of what they do not.
        signatures: lines that it needs and no table has.
        causes: kinds of incident that can bring it about; see `pipelines.incidents.causes`.
    """

    name: str
    meaning: str
    source: str
    detect: Callable[..., Iterable[Incident]]
    signatures: tuple[Signature, ...] = ()
    causes: tuple[str, ...] = ()
    is_rest: bool = False
