"""The offset that Kafka's rules let a follower truncate to, and the logged one: rows of ``gold.replica_truncations``.

Pure, no Spark. One partition at a time, with the lines of all its brokers: a follower's prediction needs its leader's
epochs. Leader epochs put the brokers in order; instants of two brokers are never compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from highwater.pipelines.kafka.releases import release_of
from highwater.pipelines.kafka.versions import Rules
from highwater.pipelines.replay.epoch_history import (
    BEYOND,
    LOGGED,
    NEW,
    UNKNOWN,
    EpochHistory,
    MissingEvidence,
    Reply,
    derived_reply,
    truncation_for,
)
from highwater.pipelines.replay.follower import FOLLOWING, LEADING, Action, Contact, ReplicaTenure
from highwater.pipelines.replay.follower_rows import (
    FULL,
    KIP_101,
    KIP_279,
    NEW_EPOCH,
    NONE,
    ON_FETCH,
    OUT_OF_RANGE,
    RECOVERY,
    TO_HIGH_WATERMARK,
    Prediction,
    row,
)
from highwater.pipelines.replay.truncation import (
    UNDEFINED_EPOCH,
    UNDEFINED_OFFSET,
    EpochEnd,
    out_of_range,
    restarts_fetcher,
)

#: An answer that makes the follower ask again names a smaller epoch each time; more rounds than this are a loop.
_ROUNDS_MAX = 64
#: The first version with KIP-279: correct answers to followers.
_CORRECT = Rules((2, 0, 1))


#: Rules by broker and instant, microseconds.
RulesOf = Callable[[int, int], Rules]


def effective_rules(rules: Rules, protocol: str | None) -> Rules:
    """Return the truncation rules of a broker whose inter-broker protocol is older than its code.

    Args:
        protocol: inter.broker.protocol.version. None if unknown: `rules` are returned unchanged.

    Source: ``ApiVersion.isTruncationOnFetchSupported``, ``isOffsetForLeaderEpochSupported`` (2.7-IV1, 0.11.0-IV2).
    """
    spoken = release_of(protocol)
    if spoken is None:
        return rules
    if spoken.oldest < (0, 11, 0):
        return Rules(min(rules.version, (0, 10, 2)))
    return Rules(min(rules.version, (2, 7, 2))) if spoken.oldest < (2, 7, 0) else rules


def truncation_rows(replicas: dict[int, list[ReplicaTenure]], rules_of: RulesOf) -> Iterator[dict[str, Any]]:
    """Yield the rows of ``gold.replica_truncations`` without cluster and partition. Times are us integers.

    Args:
        replicas: by broker, the leader epochs of its replica (`pipelines.replay.follower.tenures`).
        rules_of: returns the rules of a broker at a time (`effective_rules`).
    """
    replay = _Replay(replicas, rules_of)
    rows: dict[int, list[dict[str, Any]]] = {broker: [] for broker in replicas}
    for tenure in replay.in_order():
        rows[tenure.broker_id] += replay.observe(tenure)
    for broker in sorted(rows):
        for sequence, values in enumerate(sorted(rows[broker], key=lambda values: values["started_us"])):
            yield {**values, "broker_id": broker, "sequence": sequence}


class _Replay:
    """Replays a partition's leader epochs and keeps the epoch history of each replica's log."""

    def __init__(self, replicas: dict[int, list[ReplicaTenure]], rules_of: RulesOf) -> None:
        self._replicas = replicas
        self._rules_of = rules_of
        self._epochs: dict[int, EpochHistory] = {}
        self._led: dict[tuple[int, int], EpochHistory] = {}
        self._leader_of: dict[int, int] = {
            tenure.leader_epoch: broker
            for broker, lived in replicas.items()
            for tenure in lived
            if tenure.role == LEADING and tenure.leader_epoch is not None
        }
        self._tenures = Counter(
            (broker, tenure.leader_epoch)
            for broker, lived in replicas.items()
            for tenure in lived
            if tenure.role == FOLLOWING
        )
        self._contacts: dict[tuple[int, int | None], list[Contact]] = {}
        for lived in replicas.values():
            for tenure in lived:
                for follower, contacts in tenure.contacts.items():
                    if tenure.leader_epoch is not None:
                        self._contacts.setdefault((follower, tenure.leader_epoch), []).extend(contacts)
        for contacts in self._contacts.values():
            contacts.sort(key=lambda contact: contact.time_us)

    def in_order(self) -> list[ReplicaTenure]:
        """Return the replicas' leader epochs in order, the leader before its followers.

        Items of one broker keep their order, also those without an epoch number.
        """
        placed = []
        for broker, lived in self._replicas.items():
            epoch = -1
            for index, tenure in enumerate(lived):
                epoch = max(epoch, -1 if tenure.leader_epoch is None else tenure.leader_epoch)
                placed.append(((epoch, tenure.role != LEADING, broker, index), tenure))
        return [tenure for _, tenure in sorted(placed, key=lambda item: item[0])]

    def observe(self, tenure: ReplicaTenure) -> list[dict[str, Any]]:
        broker, rules = tenure.broker_id, self._rules_of(tenure.broker_id, tenure.started_us)
        if tenure.leader is None and tenure.leader_epoch is not None:
            tenure.leader = self._leader_of.get(tenure.leader_epoch)
        history = self._epochs.get(broker, UNKNOWN)
        if tenure.end_offset == 0:
            history = NEW
        elif tenure.end_offset is not None:
            history = history.cut(tenure.end_offset)
        if tenure.role == LEADING:
            self._epochs[broker] = self._start_epoch(tenure, history, rules)
            return list(_make_other_rows(tenure, rules))
        if tenure.role != FOLLOWING:
            self._epochs[broker] = history
            return list(_make_other_rows(tenure, rules))
        prediction = self._predict(tenure, history, rules)
        rows = list(_make_follower_rows(tenure, prediction, rules))
        self._epochs[broker] = self._end_tenure(tenure, history, prediction)
        return rows

    def _start_epoch(self, tenure: ReplicaTenure, before: EpochHistory, rules: Rules) -> EpochHistory:
        epoch, start = tenure.leader_epoch, tenure.end_offset
        if epoch is None or start is None:
            return UNKNOWN
        first = self._replicas[tenure.broker_id][0] is tenure
        if first and start > 0 and tenure.previous_leader_epoch in (None, -1):
            return UNKNOWN  # it may have led this epoch before it was restarted, from an earlier offset on
        history = before.led(epoch, start)
        self._led.setdefault((tenure.broker_id, epoch), history)
        # Before KAFKA-7415 an epoch entered the history with its first record only.
        unwritten = not rules.answers_for_epochs_before_the_first and tenure.next_end_offset == start
        return before if unwritten else history

    def _end_tenure(self, tenure: ReplicaTenure, history: EpochHistory, prediction: Prediction) -> EpochHistory:
        """Return the epochs in the follower's log when `tenure` (its time in one leader epoch) ends.

        The next log end offset has not truncated them yet.
        """
        moved = any(action.effective for action in tenure.actions)
        if tenure.next_end_offset is not None and tenure.end_offset is not None:
            moved = moved or tenure.next_end_offset != tenure.end_offset
        elif prediction.rule != NONE:
            moved = True
        if not moved or tenure.leader_epoch is None or tenure.leader is None:
            return history
        return self._led.get((tenure.leader, tenure.leader_epoch), UNKNOWN)

    def _predict(self, tenure: ReplicaTenure, history: EpochHistory, rules: Rules) -> Prediction:
        end_offset = tenure.end_offset
        unchanged = () if end_offset is None else (end_offset,)
        if tenure.leader == -1:
            return Prediction(NONE, unchanged, reason="no_leader")
        if self._is_continued(tenure, rules):
            return Prediction(NONE, unchanged, reason="fetcher_kept")
        if rules.truncates_to_high_watermark:
            lacking = "checkpointed_high_watermark" if tenure.from_checkpoint else "own_high_watermark"
            offsets = () if tenure.high_watermark is None else (tenure.high_watermark,)
            return Prediction(TO_HIGH_WATERMARK, offsets, None, "own_high_watermark", None if offsets else lacking)
        if end_offset == 0 or history.empty:
            high_watermark = tenure.high_watermark if tenure.high_watermark is not None else end_offset
            offsets = () if high_watermark is None else (high_watermark,)
            missing = None if offsets else "own_high_watermark"
            next_offset = self._find_next_offset(tenure)
            return Prediction(TO_HIGH_WATERMARK, offsets, None, "no_epoch", missing, next_offset)
        if rules.truncates_on_fetch:
            # The fetcher's initial offset is the log end; records can still arrive after the line of the start.
            start = max(end_offset or 0, tenure.added_offset or 0)
            return self._predict_dialogue(tenure, history, rules, ON_FETCH, start if end_offset is not None else None)
        return self._predict_dialogue(
            tenure, history, rules, KIP_279 if rules.epoch_replies_name_the_epoch else KIP_101, end_offset
        )

    def _is_continued(self, tenure: ReplicaTenure, rules: Rules) -> bool:
        """Return True if the fetcher of the previous leader epoch keeps running. The same process followed in that
        epoch.
        """
        before = tenure.previous
        if before is None or before.role != FOLLOWING or before.leader is None or before.leader_epoch is None:
            return False
        if tenure.leader is None or tenure.leader_epoch is None:
            return False
        return not restarts_fetcher(rules, before.leader, tenure.leader, before.leader_epoch, tenure.leader_epoch)

    def _predict_dialogue(
        self, tenure: ReplicaTenure, history: EpochHistory, rules: Rules, rule: str, end_offset: int | None
    ) -> Prediction:
        """Predict all truncations until the follower's log is a prefix of its leader's: it asks or fetches repeatedly.

        Args:
            rule: how the version truncates: by OffsetForLeaderEpoch, or on fetch.
            end_offset: the follower's log end offset. None if unknown.
        """
        contacts = self._contacts.get((tenure.broker_id, tenure.leader_epoch), [])
        first: Reply | None = None
        offsets: list[int] = []
        missing: str | None = None
        if end_offset is None:
            return Prediction(rule, missing="own_log_end", next_offset=self._find_next_offset(tenure))
        at, epochs = end_offset, history
        try:
            for _ in range(_ROUNDS_MAX):
                reply = self._find_reply(tenure, epochs, rules, rule, at, contacts)
                first = first or reply
                if reply.end is None:
                    break
                step = truncation_for(rules, reply.end, epochs, at, tenure.high_watermark or 0)
                at, epochs = min(at, step.offset), epochs.cut(step.offset)
                offsets.append(at)
                if step.complete or not epochs.entries:
                    break
        except MissingEvidence as lacking:
            missing = str(lacking)
        next_offset = self._find_next_offset(tenure)
        if missing is not None and not offsets:
            return Prediction(rule, (), first, None, missing, next_offset)
        reason = "epochs_part" if offsets and offsets[-1] < end_offset else "epochs_agree"
        correct = self._find_divergence(tenure, history, end_offset) if rule == KIP_101 else None
        return Prediction(rule, tuple(offsets) or (end_offset,), first, reason, missing, next_offset, correct)

    def _find_divergence(self, tenure: ReplicaTenure, history: EpochHistory, end_offset: int) -> int | None:
        """Return the offset at which the follower's log diverges from its leader's. None if epochs are unknown."""
        at, epochs = end_offset, history
        try:
            for _ in range(_ROUNDS_MAX):
                if not epochs.entries:
                    break
                reply = derived_reply(_CORRECT, self._get_leader_history(tenure), epochs.entries[-1][0], None)
                assert reply.end is not None  # a question is always answered
                step = truncation_for(_CORRECT, reply.end, epochs, at, tenure.high_watermark or 0)
                at, epochs = min(at, step.offset), epochs.cut(step.offset)
                if step.complete:
                    break
        except MissingEvidence:
            return None
        return at

    def _find_reply(
        self, tenure: ReplicaTenure, history: EpochHistory, rules: Rules, rule: str, at: int, contacts: list[Contact]
    ) -> Reply:
        """Return the leader's answer: from its request log, else derived from its epochs.

        A logged request matches if its offset (fetch) or epoch (OffsetForLeaderEpoch) is equal. Within one leader epoch
        the answer to the same question never changes.

        Args:
            at: the follower's log end offset.
            contacts: the follower's logged requests in this leader epoch.
        """
        asked = history.entries[-1][0] if history.entries else None
        for contact in contacts:
            if contact.epoch is None or contact.question is (rule == ON_FETCH):
                continue
            if contact.question and asked in (None, contact.epoch):
                return Reply(self._read_reply(tenure, rules, contact), LOGGED, contact.epoch)
            if not contact.question and contact.offset == at:
                return Reply(_read_divergence(contact), LOGGED, contact.epoch)
        if asked is None:
            raise MissingEvidence("own_epochs")
        return derived_reply(rules, self._get_leader_history(tenure), asked, at if rule == ON_FETCH else None)

    def _read_reply(self, tenure: ReplicaTenure, rules: Rules, contact: Contact) -> EpochEnd:
        """Return the (epoch, end offset) of a logged answer. The epoch is derived if possible, else the requested
        epoch.
        """
        epoch, offset = contact.epoch, contact.offset
        assert epoch is not None  # `_find_reply` takes no contact without
        try:
            derived = derived_reply(rules, self._get_leader_history(tenure), epoch, None).end
        except MissingEvidence:
            derived = None
        if not rules.epoch_replies_name_the_epoch:
            epoch = UNDEFINED_EPOCH
        elif derived is not None and derived.end_offset in (offset, BEYOND):
            epoch = derived.leader_epoch
        return EpochEnd(epoch, UNDEFINED_OFFSET if offset is None else offset)

    def _find_next_offset(self, tenure: ReplicaTenure) -> int | None:
        """Return the offset of the first accepted fetch in a leader epoch. None if the replica followed in it more than
        once.
        """
        if self._tenures[tenure.broker_id, tenure.leader_epoch] > 1:
            return None
        taken = self._contacts.get((tenure.broker_id, tenure.leader_epoch), [])
        return next((each.offset for each in taken if not each.question and each.diverging_end_offset is None), None)

    def _get_leader_history(self, tenure: ReplicaTenure) -> EpochHistory | None:
        if tenure.leader is None or tenure.leader_epoch is None:
            return None
        return self._led.get((tenure.leader, tenure.leader_epoch))


def _make_follower_rows(tenure: ReplicaTenure, prediction: Prediction, rules: Rules) -> Iterator[dict[str, Any]]:
    """Yield one row for the start of a leader epoch, and one row for each further truncation in it."""
    actions = list(tenure.actions)
    opening = actions.pop(0) if actions and actions[0].refused_offset is None else None
    end_offset = tenure.end_offset
    if prediction.rule == ON_FETCH and end_offset is not None:
        end_offset = max(end_offset, tenure.added_offset or 0)
    left = list(prediction.offsets)
    yield row(tenure, prediction, NEW_EPOCH, opening, left.pop(0) if left else None, rules, end_offset)
    end_offset = opening.offset if opening is not None else end_offset
    for action in actions:
        if action.refused_offset is not None:
            yield _make_reset_row(tenure, action, rules)
        else:
            expected = left.pop(0) if left else None
            again = prediction._replace(next_offset=None, reason="epochs_part", missing=None)
            if expected is None:
                again = Prediction(prediction.rule, missing="leader_epochs")
            yield row(tenure, again, "again", action, expected, rules, end_offset)
        end_offset = action.offset


def _make_reset_row(tenure: ReplicaTenure, action: Action, rules: Rules) -> dict[str, Any]:
    """Return the row of an OFFSET_OUT_OF_RANGE reset.

    The lines name both offsets, so the offset after the reset is the leader's log end or log start.
    """
    asked, reset = action.refused_offset, action.reset_offset
    assert asked is not None  # the caller looked
    predicted: int | None = None
    reason, rule = "end_of_leader_log", OUT_OF_RANGE
    if reset is not None:
        full = action.reason == FULL or reset > asked
        halts = action.reason == "not_allowed"
        outcome = out_of_range(rules, asked, reset if full else 0, BEYOND if full else reset, not halts)
        predicted = outcome.truncate_to if outcome.truncate_to is not None else asked
        reason = "start_of_leader_log" if outcome.fully else "halted" if outcome.fatal else reason
        rule = FULL if outcome.fully else rule
        if outcome.fatal:
            predicted = asked
    prediction = Prediction(rule, () if predicted is None else (predicted,), None, reason)
    return row(tenure, prediction, "out_of_range", action, predicted, rules, asked)


def _make_other_rows(tenure: ReplicaTenure, rules: Rules) -> Iterator[dict[str, Any]]:
    """Yield rows for truncations of a replica that does not follow: log recovery, or lines with a late timestamp."""
    for action in tenure.actions:
        recovers = action.reason == "corruption"
        trigger, rule = ("recovery", RECOVERY) if recovers else ("unprompted", NONE)
        prediction = Prediction(rule, reason="corrupt_segment" if recovers else "not_a_follower")
        yield row(tenure, prediction, trigger, action, None, rules, None)


def _read_divergence(contact: Contact) -> EpochEnd | None:
    if contact.diverging_end_offset is None:
        return None
    epoch = UNDEFINED_EPOCH if contact.diverging_epoch is None else contact.diverging_epoch
    return EpochEnd(epoch, contact.diverging_end_offset)
