"""One worker's part of the replay of partitions, on plain Arrow data: sorted events in, blobs out. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final

import orjson

from highwater.pipelines.base.blobs import Batches, Tables, shape
from highwater.pipelines.base.groups import Columns, Key, States, join_states
from highwater.pipelines.base.instants import NEVER_US
from highwater.pipelines.kafka.context import Contexts, Spans, find_value
from highwater.pipelines.replay.coarse import blurred_change, is_coarse
from highwater.pipelines.replay.isr_events import RANK as ISR_CHANGES
from highwater.pipelines.replay.isr_evidence import IsrEvidence
from highwater.pipelines.replay.isr_outcome import IsrOutcome, isr_row
from highwater.pipelines.replay.outcome import PartitionOutcome
from highwater.pipelines.replay.partition_fold import Output, PartitionFold
from highwater.pipelines.replay.wakes import Wake
from highwater.pipelines.replay.watches import SESSION_WAKE_TYPES, Watch, Watches
from highwater.schemas.events import Event
from highwater.schemas.fields import map_spark_types
from highwater.schemas.isr import ISR_TIMELINE

KEY_TYPES = {"cluster_id": "string", "topic": "string", "partition": "int", "broker_id": "int"}
#: An outcome: `KEY_TYPES` and these.
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
    "required_offset_logged": "long",
    "required_offset_derived": "long",
    "isr": "array<int>",
    "isr_inferred": "boolean",
    "missing": "string",
    "proven_early": "boolean",
    "awaiting_logged": "array<int>",
    "closing_arrival_us": "long",
    "closing_handled_us": "long",
    "carrier_arrival_us": "long",
    "carrier_sent_us": "long",
}
_OF_WAKES = {"kind": "wake", "base_offset": "wake_offset", "size_bytes": "wake_bytes"}
_OF_WAKES |= {name: f"wake_{name}" for name in ("high_watermark", "leader_epoch")}
#: A wake (`pipelines.replay.wakes.Wake`): `KEY_TYPES` and these.
WAKE_TYPES = {_OF_WAKES.get(name, name): type_ for name, type_ in map_spark_types(Wake).items()}
#: ``final``: the row follows from events before the seal.
_FINAL = {"final": "boolean"}
OUTCOMES = "outcomes"
WAKES = "wakes"
#: Wakes of each connection that reads the partition: events of sessions.
SESSION_WAKES = "session_wakes"
#: The fold as of the seal, with the operations that it holds and the time of its last event.
FOLDS = "folds"
#: Time from which a partition has wakes, or waiting requests, that are not final.
OPEN = "open"
SHAPES = {
    OUTCOMES: shape(KEY_TYPES | OUTCOME_TYPES | _FINAL),
    WAKES: shape(KEY_TYPES | WAKE_TYPES | _FINAL),
    SESSION_WAKES: shape({"cluster_id": "string", "broker_id": "int"} | SESSION_WAKE_TYPES),
    ISR_TIMELINE.name: ISR_TIMELINE.schema,
    FOLDS: shape(KEY_TYPES | {"frozen": "binary", "pending": "long", "last_us": "long"}),
    OPEN: shape(KEY_TYPES | {"wakes_us": "long", "waiting_us": "long"}),
}
# Kinds of rows before all events: a wake of an earlier run, as JSON in the column ``carried``;
CARRIED_WAKE = "carried_wake"
#: a connection that reads the partition has columns of its own.
WATCH = "watch"
#: Order of the rows before all events.
RANK = {WATCH: -3, CARRIED_WAKE: -2}

_CLOSING = OUTCOME_TYPES.keys() & {"closing_arrival_us", "closing_handled_us", "carrier_arrival_us", "carrier_sent_us"}
_PLAIN = attrgetter(*(name for name in OUTCOME_TYPES if name not in _CLOSING))

#: An event, its state of an earlier run, and the values of a watch.
Carrying = tuple[Event, bytes | None, tuple[Any, ...]]
_EVENT_WIDTH: Final = len(Event._fields)


class PartitionWorker:
    """Worker that replays the events of each (cluster, topic, partition, broker).

    Events are sorted by `pipelines.replay.timeline.ORDER`, else the kernel raises. A key resumes from its state at the
    last checkpoint. Its state at the new checkpoint is written as a row.

    Args:
        contexts: versions and settings.
        evidence: facts of each broker's log, by (cluster, broker).
        sealed_us: by (cluster, broker), end of the final part of the replay, exclusive, us.
        since_us: by (cluster, broker), time of the checkpoint of the saved states.
    """

    def __init__(
        self,
        contexts: Contexts,
        evidence: Mapping[tuple[str, int], IsrEvidence],
        sealed_us: Mapping[tuple[str, int], int],
        since_us: Mapping[tuple[str, int], int] = MappingProxyType({}),
    ) -> None:
        self._contexts = contexts
        self._evidence = evidence
        self._sealed_us = sealed_us
        self._since_us = since_us
        self._answering = contexts.spans(lambda rules: rules.answers_fetches_for_high_watermark)

    def __call__(self, batches: Batches, states: States) -> Batches:
        """Replay batches of `KEY_TYPES`, `Event`, ``carried`` and `Watch` columns. `states` are the saved states by
        key.
        """
        tables = Tables(SHAPES)
        for key, frozen, events in join_states(states, batches, len(KEY_TYPES), carrying):
            yield from self._replay(key, frozen, events, tables)
        yield from tables.rest()

    def _replay(self, key: Key, frozen: bytes | None, events: Iterator[Carrying], tables: Tables) -> Batches:
        """Replay the events of one key, from its serialized state if it has one. Yield full output batches."""
        cluster_id, topic, partition, broker_id = key
        since_us = self._since_us.get((cluster_id, broker_id), 0)
        eras = self._contexts.eras.get((cluster_id, broker_id), ())
        context = self._contexts.of(cluster_id, broker_id, topic, find_value(eras, since_us))
        later = deque(era for era in eras if era[0] > since_us)
        evidence = self._evidence.get((cluster_id, broker_id)) or IsrEvidence()
        sealed_us = self._sealed_us.get((cluster_id, broker_id))
        fold = None if frozen is None else PartitionFold.thawed(frozen, context, evidence)
        watches = Watches(partition, self._answering.get((cluster_id, broker_id), ()))
        rows = _Rows(key, tables, watches, self._contexts.coarse, final=sealed_us is not None)
        for event, brought, watch in _deduplicate_changes(events):
            if event.kind == WATCH:
                watches.add(Watch._make(watch))
                continue
            if event.kind == CARRIED_WAKE:
                values = orjson.loads(brought or b"")
                rows.wake(Wake._make(map(values.get, WAKE_TYPES)))
                continue
            fold = fold or PartitionFold(context, evidence)
            while later and event.time_us >= later[0][0]:
                # The broker restarted with another version: no operation waited through that.
                began_us, version = later.popleft()
                if rows.final and sealed_us is not None and sealed_us < began_us:
                    rows.seal(fold, sealed_us)
                for output in fold.finish():
                    rows.add(output, began_us)
                context = self._contexts.of(cluster_id, broker_id, topic, version)
                fold = PartitionFold(context, evidence)
            if rows.final and sealed_us is not None and event.time_us >= sealed_us:
                rows.seal(fold, sealed_us)
            for output in fold.observe(event):
                rows.add(output, event.time_us)
            if tables.full:
                yield from tables.take()
        if fold is None:
            return
        if rows.final and sealed_us is not None:
            rows.seal(fold, sealed_us)
        for output in fold.finish():
            rows.add(output, None)
        rows.close()


class _Rows:
    """Writes the output rows of one partition."""

    def __init__(self, key: Key, tables: Tables, watches: Watches, coarse: Spans, final: bool) -> None:
        self.final = final
        self._coarse = coarse
        self._key = key
        self._tables = tables
        self._watches = watches
        self._wakes_us = self._waiting_us = NEVER_US

    def add(self, output: Output, decided_us: int | None) -> None:
        if isinstance(output, Wake):
            self._tables.add(WAKES, (*self._key, *output, self.final))
            self.wake(output)
            if not self.final:
                # An append that only followers prove begins at 0 until one of them narrows it down.
                known_us = filter(None, (output.appended_lowest_us, output.committed_lowest_us))
                self._wakes_us = min((self._wakes_us, *known_us))
        elif isinstance(output, IsrOutcome):
            cluster_id, topic, partition, broker_id = self._key
            change: IsrOutcome | None = output
            begun_us, ended_us = _find_stretch(output)
            if is_coarse(self._coarse, (cluster_id, broker_id), begun_us, ended_us):
                change = blurred_change(output)
            if change is None:
                return
            place = {"cluster_id": cluster_id, "topic": topic, "partition": partition, "broker_id": broker_id}
            self._tables.add_named(ISR_TIMELINE.name, isr_row(change, **place, decided_us=decided_us))
        else:
            self._tables.add(OUTCOMES, (*self._key, *outcome_values(output), self.final))
            if not self.final:
                self._waiting_us = min(self._waiting_us, output.handled_us)

    def wake(self, wake: Wake) -> None:
        cluster_id, _, _, broker_id = self._key
        for woken in self._watches.woken_by(wake):
            self._tables.add(SESSION_WAKES, (cluster_id, broker_id, *woken))

    def seal(self, fold: PartitionFold, sealed_us: int) -> None:
        """Save the state at the checkpoint for the next run. Rows added later are marked as not final."""
        for output in fold.give_up(sealed_us):
            self.add(output, None)
        self.final = False
        if not fold.is_gone(sealed_us):
            self._tables.add(FOLDS, (*self._key, fold.freeze(), fold.pending, fold.last_us))

    def close(self) -> None:
        since = [None if time_us == NEVER_US else time_us for time_us in (self._wakes_us, self._waiting_us)]
        if any(since):
            self._tables.add(OPEN, (*self._key, *since))


def _find_stretch(change: IsrOutcome) -> tuple[int, int]:
    """Return (first, last) of the times at which an ISR change was due, proposed and committed. (0, 0) if unknown."""
    instants = (change.lowest_us, change.highest_us, change.proposed_us, change.committed_us)
    known = [time_us for time_us in instants if time_us is not None]
    return min(known, default=0), max(known, default=0)


def carrying(columns: Columns) -> Iterable[Carrying]:
    """Yield (event, saved wake, `Watch` values) of each row, from columns."""
    events = map(Event._make, zip(*columns[:_EVENT_WIDTH], strict=True))
    watches = zip(*columns[_EVENT_WIDTH + 1 :], strict=True)
    return zip(events, columns[_EVENT_WIDTH], watches, strict=True)


def _deduplicate_changes(events: Iterable[Carrying]) -> Iterator[Carrying]:
    """Yield the events without ISR changes that a second file repeats. Other events are not compared."""
    time_us, changes = 0, set[Event]()
    for carrying_event in events:
        event = carrying_event[0]
        if event.kind in ISR_CHANGES:
            if event.time_us != time_us:
                time_us, changes = event.time_us, set()
            if event in changes:
                continue
            changes.add(event)
        yield carrying_event


def outcome_values(outcome: PartitionOutcome) -> tuple[object, ...]:
    """Return an operation's values in the order of `OUTCOME_TYPES`."""
    closing = outcome.closing
    if closing is None:
        return (*_PLAIN(outcome), None, None, None, None)
    fetches = (closing.arrival_us, closing.time_us, closing.previous_arrival_us, closing.previous_sent_us)
    return (*_PLAIN(outcome), *fetches)
