"""Proofs that facts are of one life of a topic (`pipelines.kafka.topic_lives`).

Lines that show a re-creation may be missing, so their absence proves nothing. The topic id proves one life: a fact's
own id, or an id that the same broker knew before and after the fact, since an id never comes back. Without ids (before
2.8, and in ZooKeeper mode mostly) only a run of fetches without a gap proves it (`FetchChain.run`). A case that needs
more remains open.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from highwater.schemas.audit_facts import Fact


class Lives:
    """Topic ids that each broker used, with time ranges. They separate the incarnations of a re-created topic.

    Args:
        roles: brokers' own role lines.
        births_us: times of known re-creations of the topic.
        skew_max_us: largest assumed clock difference of two brokers.
    """

    def __init__(self, roles: Iterable[Fact], births_us: tuple[int, ...], skew_max_us: int) -> None:
        self._births_us = births_us
        self._skew_us = skew_max_us
        self._known: dict[int, dict[str, list[int]]] = defaultdict(dict)
        for fact in roles:
            if fact.broker_id is not None and fact.topic_id is not None:
                self._note_id(fact.broker_id, fact.topic_id, fact.time_us, fact.time_us)

    @property
    def known(self) -> list[tuple[int, str, int, int]]:
        """Return (broker, topic id, first time, last time) of all topic ids that brokers used."""
        return [
            (broker_id, topic_id, first_us, last_us)
            for broker_id, ids in self._known.items()
            for topic_id, (first_us, last_us) in ids.items()
        ]

    def knew(self, known: Iterable[tuple[int, str, int, int]]) -> None:
        """Restore the topic ids of an earlier run, in the form that `known` returns."""
        for broker_id, topic_id, first_us, last_us in known:
            self._note_id(broker_id, topic_id, first_us, last_us)

    def fetched(self, fact: Fact, before: Fact | None) -> None:
        """Record the topic id of a fetch answered without error: the leader had it between the two lines."""
        if fact.topic_id is not None and fact.broker_id is not None:
            self._note_id(fact.broker_id, fact.topic_id, fact.time_us, before.time_us if before is not None else None)

    def _note_id(self, broker_id: int, topic_id: str, first_us: int, last_us: int | None) -> None:
        known = self._known[broker_id].setdefault(topic_id, [first_us, -1])
        known[0] = min(known[0], first_us)
        if last_us is not None:
            known[1] = max(known[1], last_us)

    def topic_id(self, fact: Fact) -> str | None:
        """Return the topic id that the fact's broker used at that time. None if not certain."""
        if fact.topic_id is not None or fact.broker_id is None:
            return fact.topic_id
        for topic_id, (first_us, last_us) in self._known[fact.broker_id].items():
            if first_us < fact.time_us < last_us:
                return topic_id
        return None

    def one_life(self, *facts: Fact, one_run: bool = False) -> bool | None:
        """Return True if facts are proven to be of one incarnation of the topic, False if a re-creation is between
        them.

        None if neither is proven.

        Args:
            one_run: fetches without a missing correlation id cover all facts.
        """
        ids = {self.topic_id(fact) for fact in facts}
        if one_run or (len(ids) == 1 and None not in ids):
            return True
        if len(ids - {None}) > 1:
            return False
        # A known re-creation, on any clock, may be in between.
        first_us = min(fact.time_us for fact in facts) - self._skew_us
        last_us = max(fact.time_us for fact in facts) + self._skew_us
        return False if any(first_us <= born_us <= last_us for born_us in self._births_us) else None
