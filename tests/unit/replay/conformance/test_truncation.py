"""Truncation of followers, by version."""

from __future__ import annotations

import pytest

from highwater.pipelines.replay.truncation import (
    UNDEFINED_EPOCH,
    UNDEFINED_OFFSET,
    EpochEnd,
    OffsetOutOfRange,
    OutOfRangeReset,
    Truncation,
    diverging_epoch,
    end_offset_for,
    out_of_range,
    restarts_fetcher,
    truncated_epochs,
    truncation_for_reply,
)
from tests.unit.replay.conformance.table import Scenario, Table, check
from tests.unit.replay.model.follower import FirstStep, Step, first_step, high_watermark_after
from tests.unit.replay.model.log import ReplicaLog
from tests.unit.replay.model.rules import Rules

TABLE = Table()
NOTHING = (UNDEFINED_EPOCH, UNDEFINED_OFFSET)
CACHE = ((2, 5), (3, 6), (5, 9))
FILE_CACHE = "LeaderEpochFileCacheTest"
FETCHER = "AbstractFetcherThreadTest"


@TABLE.scenario(f"{FILE_CACHE}.shouldReturnLogEndOffsetIfLatestEpochRequested", (5, 12), since="2.0.0")
@TABLE.scenario(f"{FILE_CACHE}.shouldReturnLogEndOffsetIfLatestEpochRequested", (UNDEFINED_EPOCH, 12), until="2.0.0")
def the_latest_epoch_ends_where_the_log_does(rules: Rules) -> object:
    return tuple(end_offset_for(rules, CACHE, 12, 5))


@TABLE.scenario(f"{FILE_CACHE}.shouldReturnUndefinedOffsetIfUndefinedEpochRequested", NOTHING)
def an_undefined_epoch_has_no_end(rules: Rules) -> object:
    return tuple(end_offset_for(rules, CACHE, 12, UNDEFINED_EPOCH))


@TABLE.scenario(f"{FILE_CACHE}.shouldReturnUnsupportedIfNoEpochRecorded", NOTHING)
def a_log_without_epochs_knows_no_end(rules: Rules) -> object:
    return tuple(end_offset_for(rules, (), 12, 0))


@TABLE.scenario(f"{FILE_CACHE}.shouldReturnInvalidOffsetIfEpochIsRequestedWhichIsNotCurrentlyTracked", NOTHING)
def a_newer_epoch_than_the_latest_has_no_end(rules: Rules) -> object:
    return tuple(end_offset_for(rules, CACHE, 12, 6))


@TABLE.scenario(f"{FILE_CACHE}.shouldReturnUnsupportedIfRequestedEpochLessThanFirstEpoch", NOTHING, until="2.0.1")
@TABLE.scenario(f"{FILE_CACHE}.shouldReturnFirstEpochIfRequestedEpochLessThanFirstEpoch", (1, 5), since="2.0.1")
def an_epoch_from_before_the_log_ends_where_it_starts(rules: Rules) -> object:
    return tuple(end_offset_for(rules, CACHE, 12, 1))


@TABLE.scenario(f"{FILE_CACHE}.shouldGetFirstOffsetOfSubsequentEpochWhenOffsetRequestedForPreviousEpoch", 6)
def an_epoch_ends_where_the_next_one_starts(rules: Rules) -> object:
    return end_offset_for(rules, CACHE, 12, 2).end_offset


@TABLE.scenario(f"{FILE_CACHE}.shouldReturnNextAvailableEpochIfThereIsNoExactEpochForTheOneRequested", (3, 9), "2.0.0")
@TABLE.scenario(
    f"{FILE_CACHE}.shouldReturnNextAvailableEpochIfThereIsNoExactEpochForTheOneRequested",
    (UNDEFINED_EPOCH, 9),
    until="2.0.0",
)
def a_gap_in_the_epochs_is_answered_with_the_one_before_it(rules: Rules) -> object:
    return tuple(end_offset_for(rules, CACHE, 12, 4))


@TABLE.scenario(f"{FILE_CACHE}.shouldDropEntriesOnEpochBoundaryWhenRemovingLatestEntries", ((2, 5),))
def truncating_to_the_start_of_an_epoch_forgets_it(rules: Rules) -> object:
    return truncated_epochs(CACHE, 6)


@TABLE.scenario(f"{FILE_CACHE}.shouldEnforceMonotonicallyIncreasingEpochs", ((1, 0), (2, 3)))
def an_older_epoch_is_never_noted_again(rules: Rules) -> object:
    log = ReplicaLog(rules)
    for epoch, offset in ((1, 0), (2, 3), (1, 5), (2, 6)):
        log.assign_epoch(epoch, offset)
    return log.epochs


@TABLE.scenario(
    "ReplicaManagerTest.testBecomeFollowerWhenLeaderIsUnchangedButMissedLeaderUpdate",
    FirstStep(Step.TRUNCATE, 7),
    until="0.11.0",
)
@TABLE.scenario(f"{FETCHER}.testTruncation", FirstStep(Step.ASK, 7, 5), "0.11.0", "2.8.0")
@TABLE.scenario(f"{FETCHER}.testTruncationOnFetchSkippedIfPartitionRemoved", FirstStep(Step.FETCH, 12, 5), "2.8.0")
def how_a_follower_starts(rules: Rules) -> object:
    return first_step(rules, CACHE, log_end_offset=12, high_watermark=7)


@TABLE.scenario(f"{FETCHER}.testTruncateToHighWatermarkIfLeaderEpochInfoNotAvailable", FirstStep(Step.TRUNCATE, 7))
def without_epochs_a_follower_truncates_to_its_high_watermark(rules: Rules) -> object:
    return first_step(rules, (), log_end_offset=12, high_watermark=7)


@TABLE.scenario(
    f"{FETCHER}.testTruncateToHighWatermarkIfLeaderEpochRequestNotSupported", Truncation(7, True), since="0.11.0"
)
def a_leader_that_knows_nothing_sends_the_follower_to_its_high_watermark(rules: Rules) -> object:
    return truncation_for_reply(rules, EpochEnd(*NOTHING), CACHE, 12, initial_offset=7)


@TABLE.scenario("ReplicaFetcherThreadTest.shouldTruncateToOffsetSpecifiedInEpochOffsetResponse", (10, True), "0.11.0")
def a_follower_truncates_to_the_leaders_end_of_its_epoch(rules: Rules) -> object:
    return tuple(truncation_for_reply(rules, end_offset_for(rules, CACHE, 10, 5), CACHE, 12, 7))


@TABLE.scenario(
    "EpochDrivenReplicationProtocolAcceptanceTest.shouldFollowLeaderEpochBasicWorkflow", (12, True), "0.11.0"
)
def a_leader_that_is_ahead_makes_nothing_be_thrown_away(rules: Rules) -> object:
    return tuple(truncation_for_reply(rules, end_offset_for(rules, CACHE, 40, 5), CACHE, 12, 7))


KNOWS_MORE = "ReplicaFetcherThreadTest.shouldTruncateToOffsetSpecifiedInEpochOffsetResponseIfFollowerHasNoMoreEpochs"
ASKS_AGAIN = "ReplicaFetcherThreadTest.shouldFetchLeaderEpochSecondTimeIfLeaderRepliesWithEpochNotKnownToFollower"


@TABLE.scenario(f"{KNOWS_MORE} (KAFKA-6361)", ((12, True),), "0.11.0", "2.0.0")
@TABLE.scenario(ASKS_AGAIN, ((9, False), (6, True)), since="2.0.0")
def a_follower_whose_epoch_the_leader_never_had_meets_it_where_the_logs_part(rules: Rules) -> object:
    """Follower: epochs 2, 3 and 5; leader: 2, 4 and 6. Both have offsets 5 to 5 of epoch 2 alone in common."""
    leaders, leader_end = ((2, 5), (4, 6), (6, 14)), 20
    epochs, end, steps = CACHE, 12, []
    while not steps or not steps[-1].complete:
        steps.append(
            truncation_for_reply(rules, end_offset_for(rules, leaders, leader_end, epochs[-1][0]), epochs, end, 5)
        )
        end = min(end, steps[-1].offset)
        epochs = truncated_epochs(epochs, end)
    return tuple(tuple(step) for step in steps)


@TABLE.scenario("ReplicaFetcherThreadTest.shouldUseLeaderEndOffsetIfInterBrokerVersionBelow20", (9, True), "0.11.0")
def an_answer_without_an_epoch_is_taken_at_its_word(rules: Rules) -> object:
    return tuple(truncation_for_reply(rules, EpochEnd(UNDEFINED_EPOCH, 9), CACHE, 12, 7))


@TABLE.scenario(
    "ReplicaFetcherThreadTest.shouldTruncateIfLeaderRepliesWithDivergingEpochNotKnownToFollower", (9, False), "2.8.0"
)
def a_diverging_epoch_that_the_follower_does_not_know_truncates_to_the_one_before(rules: Rules) -> object:
    return tuple(truncation_for_reply(rules, EpochEnd(4, 11), CACHE, 12, 7))


@TABLE.scenario("PartitionTest.testLastFetchedOffsetValidation", [(0, 2), (2, 7), None, None, "out of range"], "2.7.0")
def where_a_fetch_diverges(rules: Rules) -> object:
    """Epochs 0 (0 to 1), 2 (2 to 6) and 4 (from 7, ends at 12): (last fetched epoch, fetch offset)."""
    epochs, found = ((0, 0), (2, 2), (4, 7)), []
    for last_fetched, offset in ((1, 5), (3, 9), (2, 7), (4, 12), (5, 9)):
        try:
            end = diverging_epoch(rules, epochs, 12, 0, offset, last_fetched)
            found.append(tuple(end) if end is not None else None)
        except OffsetOutOfRange:
            found.append("out of range")
    return found


@TABLE.scenario("PartitionTest.testLastFetchedOffsetValidation", "out of range", since="2.7.0")
def a_fetch_from_before_the_log_is_out_of_range_whatever_its_epoch(rules: Rules) -> object:
    try:
        return diverging_epoch(rules, ((0, 0), (4, 7)), 12, 6, 3, 0)
    except OffsetOutOfRange:
        return "out of range"


@TABLE.scenario(f"{FETCHER}.testFollowerFetchOutOfRangeHigh", OutOfRangeReset(4, 4))
def a_follower_ahead_of_its_leader_truncates_where_unclean_election_is_allowed(rules: Rules) -> object:
    return out_of_range(rules, 6, leader_start_offset=0, leader_end_offset=4, unclean_election=True)


@TABLE.scenario("ReplicaFetcherThread (KAFKA-3410)", OutOfRangeReset(6, None, fatal=True), until="2.0.1")
@TABLE.scenario(f"{FETCHER}.testFollowerFetchOutOfRangeHigh (KAFKA-7414)", OutOfRangeReset(4, 4), since="2.0.1")
def a_follower_ahead_of_its_leader_where_unclean_election_is_not_allowed(rules: Rules) -> object:
    return out_of_range(rules, 6, leader_start_offset=0, leader_end_offset=4, unclean_election=False)


@TABLE.scenario(f"{FETCHER}.testFollowerFetchOutOfRangeLow", OutOfRangeReset(9, 9, fully=True))
def a_follower_from_before_its_leaders_log_starts_anew(rules: Rules) -> object:
    return out_of_range(rules, 6, leader_start_offset=9, leader_end_offset=20, unclean_election=False)


@TABLE.scenario(f"{FETCHER}.testFollowerFetchOutOfRangeLow", OutOfRangeReset(6, None))
def a_leader_that_caught_up_meanwhile_is_fetched_from_as_before(rules: Rules) -> object:
    return out_of_range(rules, 6, leader_start_offset=2, leader_end_offset=20, unclean_election=False)


FOLLOWS_ON = "PartitionTest.testMakeFollowerWithNoLeaderIdChange"


@TABLE.scenario(f"{FOLLOWS_ON} (KAFKA-7164)", [False, False, False, True], until="2.0.1")
@TABLE.scenario(FOLLOWS_ON, [False, False, True, True], "2.0.1", "2.1.0")
@TABLE.scenario(f"{FOLLOWS_ON} (KAFKA-7395)", [False, True, True, True], since="2.1.0")
def what_restarts_a_fetcher(rules: Rules) -> object:
    """Same leader and epoch; next epoch; an epoch missed; another leader."""
    changes = ((1, 1, 4, 4), (1, 1, 4, 5), (1, 1, 4, 6), (1, 2, 4, 5))
    return [restarts_fetcher(rules, *change) for change in changes]


@TABLE.scenario(
    "ReplicaManagerTest.testFetcherAreNotRestartedIfLeaderEpochIsNotBumpedWithKRaftPath", False, since="3.3.0"
)
@TABLE.scenario("PartitionTest.testMakeFollowerWithNoLeaderIdChange", True, until="3.3.0")
def another_leader_within_one_epoch_restarts_the_fetcher(rules: Rules) -> object:
    return restarts_fetcher(rules, 1, 2, 4, 4)


@TABLE.scenario(
    "EpochDrivenReplicationProtocolAcceptanceTest.shouldSurviveFastLeaderChange", (118, 118), until="0.11.0"
)
@TABLE.scenario("EpochDrivenReplicationProtocolAcceptanceTest.shouldSurviveFastLeaderChange", (119, 119), "0.11.0")
def a_follower_whose_high_watermark_lags_keeps_its_acked_record(rules: Rules) -> object:
    """KIP-101, first scenario: a follower has record 118, but not yet a high watermark beyond it, and starts anew."""
    own, leaders = ((0, 0),), ((0, 0), (1, 119))
    step = first_step(rules, own, log_end_offset=119, high_watermark=118)
    if step.step is Step.TRUNCATE:
        return step.offset, min(119, step.offset)
    if step.step is Step.ASK:
        reply = end_offset_for(rules, leaders, 130, step.leader_epoch)
        offset = truncation_for_reply(rules, reply, own, 119, step.offset).offset
        return offset, min(119, offset)
    assert diverging_epoch(rules, leaders, 130, 0, step.offset, step.leader_epoch) is None
    return step.offset, 119


PROCESSED = f"{FETCHER}.testTruncateOnFetchDoesNotProcessPartitionData"


@TABLE.scenario(PROCESSED, [9, 5], since="3.4.1")
@TABLE.scenario(f"{PROCESSED} (KAFKA-14704)", [9, 9], since="2.8.0", until="3.4.1")
def an_answer_that_says_to_truncate_brings_no_high_watermark(rules: Rules) -> object:
    """The leader's is 9, the follower's was 5; its log ends at 12."""
    return [high_watermark_after(rules, 5, 9, 12, 0, diverging) for diverging in (False, True)]


@TABLE.scenario("UnifiedLogTest.testMaybeUpdateHighWatermarkAsFollower", [12, 3])
def a_followers_high_watermark_lies_within_its_log(rules: Rules) -> object:
    return [high_watermark_after(rules, 5, leaders, 12, 3, diverging=False) for leaders in (20, 1)]


@pytest.mark.parametrize(("scenario", "version"), TABLE.parameters())
def test_truncation(scenario: Scenario, version: str) -> None:
    check(scenario, version)
