"""Whether facts are surely of one life of a topic (`pipelines.kafka.topic_lives`).

Lines that tell of a new creation may be missing, so that none is there proves nothing. What proves one life is the
topic's id: a fact's own, or one that the same broker knew before and after it, for an id never comes back. Without
ids (before 2.8, and in ZooKeeper mode mostly) only a run of fetches without a gap proves it (`FetchChain.run`), and a
case that needs more stays open.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from highwater.schemas.audit_facts import Fact


class Lives:
    """Topic ids that each broker knew, and from when to when; those of fetches are added as they stream by.

    Args:
        roles: lines of what brokers themselves did.
        births_us: when the topic was re-created, as far as lines tell.
        skew_max_us: clocks of two brokers are taken to differ by no more.
    """

    def __init__(self, roles: Iterable[Fact], births_us: tuple[int, ...], skew_max_us: int) -> None:
        self._births_us = births_us
        self._skew_us = skew_max_us
        self._known: dict[int, dict[str, list[int]]] = defaultdict(dict)
        for fact in roles:
            if fact.broker_id is not None and fact.topic_id is not None:
                self._knew(fact.broker_id, fact.topic_id, fact.time_us, fact.time_us)

    @property
    def known(self) -> list[tuple[int, str, int, int]]:
        """What brokers knew: broker, topic id, from when on, and until when."""
        return [
            (broker_id, topic_id, first_us, last_us)
            for broker_id, ids in self._known.items()
            for topic_id, (first_us, last_us) in ids.items()
        ]

    def knew(self, known: Iterable[tuple[int, str, int, int]]) -> None:
        """Take what an earlier run had as `known`."""
        for broker_id, topic_id, first_us, last_us in known:
            self._knew(broker_id, topic_id, first_us, last_us)

    def fetched(self, fact: Fact, before: Fact | None) -> None:
        """A fetch that was answered without error: the id was the leader's after `before` and before its line."""
        if fact.topic_id is not None and fact.broker_id is not None:
            self._knew(fact.broker_id, fact.topic_id, fact.time_us, before.time_us if before is not None else None)

    def _knew(self, broker_id: int, topic_id: str, first_us: int, last_us: int | None) -> None:
        known = self._known[broker_id].setdefault(topic_id, [first_us, -1])
        known[0] = min(known[0], first_us)
        if last_us is not None:
            known[1] = max(known[1], last_us)

    def topic_id(self, fact: Fact) -> str | None:
        """The topic's id at a fact, if it is certain."""
        if fact.topic_id is not None or fact.broker_id is None:
            return fact.topic_id
        for topic_id, (first_us, last_us) in self._known[fact.broker_id].items():
            if first_us < fact.time_us < last_us:
                return topic_id
        return None

    def one_life(self, *facts: Fact, one_run: bool = False) -> bool | None:
        """Whether facts are of one life; None if that is not shown, and no new creation is known between them.

        Args:
            one_run: a run of fetches without a gap spans them.
        """
        ids = {self.topic_id(fact) for fact in facts}
        if one_run or (len(ids) == 1 and None not in ids):
            return True
        if len(ids - {None}) > 1:
            return False
        # A new creation that is known, on whatever clock, may lie between.
        first_us = min(fact.time_us for fact in facts) - self._skew_us
        last_us = max(fact.time_us for fact in facts) + self._skew_us
        return False if any(first_us <= born_us <= last_us for born_us in self._births_us) else None
