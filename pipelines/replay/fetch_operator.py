"""The replay of delayed fetches on Spark: ``transformWithStateInPandas``, a key is a connection to a broker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from pipelines.replay.fetch_operations import FETCH_TYPES, fetch_values
from pipelines.replay.fetch_rules import FetchOutcome
from pipelines.replay.fetch_sessions import FetchSession
from pipelines.replay.fetch_timeline import CARRIED, EVENT_TYPES, KEY, ORIGIN_TYPES
from pipelines.replay.freeze import freeze, thaw
from pipelines.replay.judge import Tolerances
from pipelines.replay.versions import Rules, rules_for
from schemas.session_events import SessionEvent

#: ``frozen``: the fold as of the seal, with the fetches that it holds and the time of its last event; else null.
STATE_TYPES = {"frozen": "binary", "pending": "long", "last_us": "long"}
FETCH_SCHEMA = "cluster_id string, broker_id int, connection string, " + ", ".join(
    f"{name} {type_}" for name, type_ in (FETCH_TYPES | STATE_TYPES).items()
)
_COLUMNS = [*KEY, *FETCH_TYPES, *STATE_TYPES]
_NO_FETCH = (None,) * len(FETCH_TYPES)
_NO_STATE = (None,) * len(STATE_TYPES)


class SessionReplay(StatefulProcessor):
    """Folds the events of a connection in their order and gives its fetches, judged.

    The rows of a key must come in the order of `pipelines.replay.fetch_timeline.ORDER`; the session raises if they do
    not. A row of the kind `CARRIED` comes first and holds the session as of the last seal; the session as of the new
    one is given as a row, as in `pipelines.replay.operator`.

    Args:
        limits: how fetches are judged.
        versions: Kafka version by (cluster, broker).
        sealed_us: by (cluster, broker), up to where the replay of fetches is final, exclusive.
    """

    def __init__(
        self,
        limits: Tolerances,
        versions: Mapping[tuple[str, int], str],
        sealed_us: Mapping[tuple[str, int], int],
    ) -> None:
        self._limits = limits
        self._versions = versions
        self._sealed_us = sealed_us

    def init(self, handle: StatefulProcessorHandle) -> None:
        """No state lives in the operator: see above."""

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        cluster_id, broker_id, _ = key
        rules = rules_for(self._versions.get((cluster_id, broker_id)))
        sealed_us = self._sealed_us.get((cluster_id, broker_id))
        session = FetchSession(rules)
        final = sealed_us is not None
        for frame in rows:
            given: list[tuple[Any, ...]] = []
            listed = session_events(frame)
            if frame["kind"].iloc[0] == CARRIED:
                next(listed)
                session = thaw(bytes(frame["carried"].iloc[0]), (rules,))
            for event in listed:
                if final and sealed_us is not None and event.time_us >= sealed_us:
                    given += _frozen(key, session, rules, sealed_us)
                    final = False
                given += [self._row(key, outcome) for outcome in session.observe(event)]
            if given:
                yield pd.DataFrame(given, columns=_COLUMNS, dtype=object)
        given = _frozen(key, session, rules, sealed_us) if final and sealed_us is not None else []
        given += [self._row(key, outcome) for outcome in session.finish()]
        if given:
            yield pd.DataFrame(given, columns=_COLUMNS, dtype=object)

    def close(self) -> None:
        """Nothing to release."""

    def _row(self, key: Any, outcome: FetchOutcome) -> tuple[Any, ...]:
        return (*key, *fetch_values(outcome, self._limits), *_NO_STATE)


def _frozen(key: Any, session: FetchSession, rules: Rules, sealed_us: int) -> list[tuple[Any, ...]]:
    if session.is_gone(sealed_us):
        return []
    return [(*key, *_NO_FETCH, freeze(session, (rules,)), session.pending, session.last_us)]


def session_events(frame: pd.DataFrame) -> Iterator[SessionEvent]:
    """Rows of the timeline as events."""
    columns = [_column(frame[name].tolist(), type_) for name, type_ in EVENT_TYPES.items()]
    origins = [_column(frame[name].tolist(), type_) for name, type_ in ORIGIN_TYPES.items()]
    return map(SessionEvent._make, zip(*columns, zip(*origins, strict=True), strict=True))


def _column(values: list[Any], type_: str) -> list[Any]:
    if type_.startswith("array"):
        return [() if value is None else tuple(value.tolist()) for value in values]
    if type_ in ("int", "long"):
        # Pandas turns a column of integers with nulls into floating point; microseconds since the epoch fit.
        return [None if value is None or value != value else int(value) for value in values]
    return values
