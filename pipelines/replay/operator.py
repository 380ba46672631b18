"""The kernel as Spark's arbitrary stateful operator, ``transformWithStateInPandas``: a key is a broker's partition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Any

import orjson
import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from pipelines.replay.batches import Wake
from pipelines.replay.context import Contexts
from pipelines.replay.isr_evidence import IsrEvidence
from pipelines.replay.isr_outcome import IsrOutcome, isr_row
from pipelines.replay.outcome import PartitionOutcome
from pipelines.replay.partition_fold import Output, PartitionFold
from pipelines.replay.timeline import EVENT_TYPES, KEY
from schemas.events import Event

_EVENT_COLUMNS = list(EVENT_TYPES)

#: An outcome in Spark: `KEY` and these.
OUTCOME_TYPES = {
    "request_id": "string",
    "base_offset": "long",
    "handled_us": "long",
    "error_code": "int",
    "predicted_error_code": "int",
    "leader_epoch": "int",
    "lowest_us": "long",
    "highest_us": "long",
    "cause": "string",
    "closing_replica": "int",
    "without_closing_us": "long",
    "closing_arrival_us": "long",
    "closing_handled_us": "long",
    "carrier_arrival_us": "long",
    "carrier_sent_us": "long",
    "required_offset_logged": "long",
    "required_offset_derived": "long",
    "isr": "array<int>",
    "isr_inferred": "boolean",
    "missing": "string",
    "proven_early": "boolean",
    "awaiting_logged": "array<int>",
}
#: A wake in Spark (`pipelines.replay.batches.Wake`): `KEY` and these. ``wake`` is its kind, null for an outcome.
WAKE_TYPES = {
    "wake": "string",
    "wake_offset": "long",
    "wake_bytes": "long",
    "estimated": "boolean",
    "appended_lowest_us": "long",
    "appended_highest_us": "long",
    "committed_lowest_us": "long",
    "committed_highest_us": "long",
    "unstable": "boolean",
    "wake_high_watermark": "long",
    "wake_leader_epoch": "int",
    "carrier": "string",
    "without_carrier_us": "long",
}
#: A change of the ISR: a row of ``gold.isr_timeline`` as JSON, its instants in microseconds; null for anything else.
ISR_CHANGE = "isr_change"
#: ``final``: given by what lies before the seal. ``frozen``: the fold as of the seal, with the operations that it holds
#: and the time of its last event; null for anything else.
STATE_TYPES = {"final": "boolean", "frozen": "binary", "pending": "long", "last_us": "long"}
REPLAY_SCHEMA = "cluster_id string, topic string, partition int, broker_id int, " + ", ".join(
    f"{name} {type_}" for name, type_ in (OUTCOME_TYPES | WAKE_TYPES | {ISR_CHANGE: "string"} | STATE_TYPES).items()
)
#: Kind of the row that brings a fold from an earlier run, in the column ``carried``; it comes before all events.
CARRIED = "carried"


class PartitionReplay(StatefulProcessor):
    """Folds the events of a key in their order and gives the outcomes.

    The rows of a key must come in the order of `pipelines.replay.timeline.ORDER`; the kernel raises if they do not. A
    row of the kind `CARRIED` comes first and holds the fold as of the last seal. The fold as of the new one is given as
    a row, too: Spark's own state of an operator cannot go back to what it was before a late file, a table can.

    Args:
        contexts: versions and settings.
        evidence: by (cluster, broker).
        sealed_us: by (cluster, broker), up to where the replay is final, exclusive.
    """

    def __init__(
        self,
        contexts: Contexts,
        evidence: Mapping[tuple[str, int], IsrEvidence],
        sealed_us: Mapping[tuple[str, int], int],
    ) -> None:
        self._contexts = contexts
        self._evidence = evidence
        self._sealed_us = sealed_us

    def init(self, handle: StatefulProcessorHandle) -> None:
        """No state lives in the operator: see above."""

    def handleInputRows(
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,
    ) -> Iterator[pd.DataFrame]:
        cluster_id, topic, _, broker_id = key
        context = self._contexts.of(cluster_id, broker_id, topic)
        evidence = self._evidence.get((cluster_id, broker_id)) or IsrEvidence()
        sealed_us = self._sealed_us.get((cluster_id, broker_id))
        fold = PartitionFold(context, evidence)
        final = sealed_us is not None
        for frame in rows:
            given: list[tuple[Any, ...]] = []
            listed = events(frame)
            if frame["kind"].iloc[0] == CARRIED:
                next(listed)
                fold = PartitionFold.thawed(bytes(frame["carried"].iloc[0]), context, evidence)
            for event in listed:
                if final and sealed_us is not None and event.time_us >= sealed_us:
                    given += _frozen(key, fold, sealed_us)
                    final = False
                given += [_values(key, output, final, event.time_us) for output in fold.observe(event)]
            if given:
                yield _frame(key, given)
        given = _frozen(key, fold, sealed_us) if final and sealed_us is not None else []
        given += [_values(key, output, False, None) for output in fold.finish()]
        if given:
            yield _frame(key, given)

    def close(self) -> None:
        """Nothing to release."""


def events(frame: pd.DataFrame) -> Iterator[Event]:
    """Rows of the timeline as events."""
    columns = []
    for name in _EVENT_COLUMNS:
        values = frame[name].tolist()
        kind = EVENT_TYPES[name]
        if kind == "array<int>":
            values = [None if value is None else tuple(int(item) for item in value) for value in values]
        elif kind in ("int", "long"):
            # Pandas turns a column of integers with nulls into floating point; microseconds since the epoch fit.
            values = [None if value is None or value != value else int(value) for value in values]
        columns.append(values)
    return map(Event._make, zip(*columns, strict=True))


def _frame(key: Any, rows: list[tuple[Any, ...]]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=_COLUMNS, dtype=object)
    for name, value in zip(reversed(KEY), reversed(key), strict=True):
        frame.insert(0, name, value)
    return frame


def _values(key: Any, output: Output, final: bool, decided_us: int | None) -> tuple[Any, ...]:
    if isinstance(output, Wake):
        return (*_NO_OUTCOME, *output, None, final, None, None, None)
    if isinstance(output, IsrOutcome):
        cluster_id, topic, partition, broker_id = key
        place = {"cluster_id": cluster_id, "broker_id": int(broker_id), "topic": topic, "partition": int(partition)}
        row = isr_row(output, **place, decided_us=decided_us)
        return (*_NO_OUTCOME, *_NO_WAKE, orjson.dumps(row).decode(), final, None, None, None)
    return (*outcome_values(output), *_NO_WAKE, None, final, None, None, None)


def _frozen(key: Any, fold: PartitionFold, sealed_us: int) -> list[tuple[Any, ...]]:
    if fold.is_gone(sealed_us):
        return []
    return [(*_NO_OUTCOME, *_NO_WAKE, None, True, fold.freeze(), fold.pending, fold.last_us)]


_NO_OUTCOME = (None,) * len(OUTCOME_TYPES)
_NO_WAKE = (None,) * len(WAKE_TYPES)
_COLUMNS = [*OUTCOME_TYPES, *WAKE_TYPES, ISR_CHANGE, *STATE_TYPES]
#: Columns that stand in the outcome under their own names.
_PLAIN = attrgetter(*(name for name in OUTCOME_TYPES if name in PartitionOutcome.__dataclass_fields__))
_PLAIN_NAMES = tuple(name for name in OUTCOME_TYPES if name in PartitionOutcome.__dataclass_fields__)


def outcome_row(outcome: PartitionOutcome) -> dict[str, Any]:
    """An outcome as the columns of `OUTCOME_TYPES`."""
    closing = outcome.closing
    row: dict[str, Any] = dict(zip(_PLAIN_NAMES, _PLAIN(outcome), strict=True))
    row["isr"] = list(outcome.isr)
    row["awaiting_logged"] = None if outcome.awaiting_logged is None else list(outcome.awaiting_logged)
    row["closing_arrival_us"] = closing.arrival_us if closing else None
    row["closing_handled_us"] = closing.time_us if closing else None
    row["carrier_arrival_us"] = closing.previous_arrival_us if closing else None
    row["carrier_sent_us"] = closing.previous_sent_us if closing else None
    return row


def outcome_values(outcome: PartitionOutcome) -> tuple[Any, ...]:
    """The values of `outcome_row`, in the order of `OUTCOME_TYPES`."""
    row = outcome_row(outcome)
    return tuple(row[name] for name in OUTCOME_TYPES)
