"""The replay of delayed fetches on Spark: ``transformWithStateInPandas``, a key is a connection to a broker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from pipelines.replay.fetch_operations import FETCH_TYPES, fetch_values
from pipelines.replay.fetch_sessions import FetchOutcome, FetchSession
from pipelines.replay.fetch_timeline import EVENT_TYPES, KEY, ORIGIN_TYPES
from pipelines.replay.judge import Tolerances
from pipelines.replay.versions import rules_for
from schemas.session_events import SessionEvent

FETCH_SCHEMA = "cluster_id string, broker_id int, connection string, " + ", ".join(
    f"{name} {type_}" for name, type_ in FETCH_TYPES.items()
)


class SessionReplay(StatefulProcessor):
    """Folds the events of a connection in their order and gives its fetches, judged.

    The rows of a key must come in the order of `pipelines.replay.fetch_timeline.ORDER`; the session raises if they do
    not.
    """

    def __init__(self, limits: Tolerances, versions: Mapping[tuple[str, int], str]) -> None:
        self._limits = limits
        self._versions = versions

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Nothing lives on between batches yet: a batch holds the whole history of its keys."""

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        cluster_id, broker_id, _ = key
        session = FetchSession(rules_for(self._versions.get((cluster_id, broker_id))))
        for frame in rows:
            outcomes = [outcome for event in session_events(frame) for outcome in session.observe(event)]
            if outcomes:
                yield self._frame(key, outcomes)
        outcomes = list(session.finish())
        if outcomes:
            yield self._frame(key, outcomes)

    def close(self) -> None:
        """Nothing to release."""

    def _frame(self, key: Any, outcomes: list[FetchOutcome]) -> pd.DataFrame:
        rows = [(*key, *fetch_values(outcome, self._limits)) for outcome in outcomes]
        return pd.DataFrame(rows, columns=[*KEY, *FETCH_TYPES], dtype=object)


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
