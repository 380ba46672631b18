"""What brokers log of their checks at TRACE, compared with the model."""

from __future__ import annotations

from tests.unit.replay.model.rules import rules_for
from tests.unit.replay.purgatory import check_lines as c
from tests.unit.replay.purgatory.check_lines import CheckedProduce, CheckLine
from tests.unit.replay.purgatory.checks import PurgatoryChecker

PENDING, DONE, NOT_LED, TOO_FEW = (True, 7), (False, 0), (False, 6), (False, 20)


class Log:
    """A broker's log of one partition that it leads, with followers 2 and 3; one line a millisecond."""

    def __init__(self, version: str = "2.8.2") -> None:
        self.checker = PurgatoryChecker(rules_for(version))
        self.ms, self.order = 0, 0
        self.results: list[CheckedProduce] = []
        self.say(c.LEADER, high_watermark=0)

    def say(self, kind: str, **columns: object) -> Log:
        self.ms, self.order = self.ms + 1, self.order + 1
        self.results += self.checker.observe(CheckLine(kind, self.ms * 1_000, self.order, **columns))  # type: ignore[arg-type]
        return self

    def status(self, kind: str, required: int, status: tuple[bool, int] = PENDING, partitions: int | None = 1) -> Log:
        return self.say(
            kind,
            required_offset=required,
            start_offset=required - 1,
            acks_pending=status[0],
            error_code=status[1],
            partitions=partitions if kind == c.INITIAL else None,
        )

    def progress(self, required: int, awaiting: tuple[int, ...] = (2,)) -> Log:
        return self.say(c.PROGRESS, required_offset=required, awaited=bool(awaiting))

    def check(self, required: int, awaiting: tuple[int, ...] = (2,)) -> Log:
        return self.status(c.CHECK, required).progress(required, awaiting)

    def created(self, required: int, partitions: int | None = 1) -> Log:
        return self.status(c.INITIAL, required, partitions=partitions).check(required).check(required)

    def moved(self, high_watermark: int) -> Log:
        return self.say(c.HIGH_WATERMARK, high_watermark=high_watermark)

    def later(self, ms: int) -> Log:
        self.ms += ms
        return self

    def verdicts(self) -> list[tuple[int, bool | None, str | None]]:
        self.results += self.checker.finish()
        return [(produce.required_offset, produce.agrees, produce.reason) for produce in self.results]


def test_a_produce_that_is_checked_twice_and_then_when_it_is_committed():
    log = Log().created(1).later(50).moved(1).check(1, ()).say(c.ROUND_OVER)
    assert log.verdicts() == [(1, True, None)]
    assert log.results[0].checks == 3


def test_a_round_checks_what_is_not_committed_yet_as_well():
    log = Log().created(1).created(2).later(50).moved(1).check(1, ()).check(2).say(c.ROUND_OVER)
    log.later(50).moved(2).check(2, ()).say(c.ROUND_OVER)
    assert log.verdicts() == [(1, True, None), (2, True, None)]


def test_one_that_is_committed_when_it_comes_is_checked_once():
    log = Log().moved(3).status(c.INITIAL, 3).check(3, ())
    assert log.verdicts() == [(3, True, None)]


def test_a_status_that_the_checks_before_do_not_make():
    log = Log().created(1).later(50).moved(1).status(c.CHECK, 1, DONE)
    assert log.verdicts() == [(1, False, c.STATUS)]
    assert (log.results[0].predicted, log.results[0].logged) == (PENDING, DONE)


def test_the_others_partitions_of_a_produce_are_checked_on_when_this_one_is_done():
    log = Log().created(1, partitions=2).later(50).moved(1).check(1, ()).say(c.ROUND_OVER)
    log.status(c.CHECK, 1, DONE)
    assert log.verdicts() == [(1, True, None)]


def test_one_that_is_done_waits_no_more():
    log = Log().created(1, partitions=2).later(50).moved(1).check(1, ()).say(c.ROUND_OVER).later(50).check(1)
    assert log.verdicts() == [(1, False, c.CHECKED_WHEN_DONE)]


def test_a_wake_up_that_is_lost():
    log = Log().created(1).later(50).moved(1).say(c.ROUND_OVER).later(1_000).status(c.EXPIRED, 1)
    assert log.verdicts() == [(1, False, c.NOT_CHECKED)]


def test_a_wake_up_that_is_lost_shows_at_the_end_where_no_line_ends_a_round():
    assert Log().created(1).later(50).moved(1).later(500).moved(2).verdicts() == [(1, False, c.NOT_CHECKED)]


def test_a_high_watermark_that_is_logged_right_after_a_check_may_have_been_seen_by_it():
    log = Log().created(1).moved(1).say(c.ROUND_OVER)
    assert log.verdicts() == [(1, True, None)]


def test_but_not_if_it_still_waits_afterwards():
    log = Log().created(1).moved(1).say(c.ROUND_OVER).later(500).status(c.EXPIRED, 1)
    assert log.verdicts() == [(1, False, c.NOT_CHECKED)]


def test_an_expiry_that_ties_with_the_high_watermark():
    log = Log().created(1).later(900).moved(1).status(c.EXPIRED, 1)
    assert log.verdicts() == [(1, True, None)]


def test_an_expiry_without_a_commit():
    assert Log().created(1).later(900).status(c.EXPIRED, 1).verdicts() == [(1, True, None)]


def test_a_check_that_nothing_has_caused():
    log = Log().created(1).later(50).check(1)
    assert log.verdicts() == [(1, False, c.NO_TRIGGER)]


def test_another_partition_of_the_produce_can_have_caused_it():
    assert Log().created(1, partitions=2).later(50).check(1).verdicts() == [(1, None, None)]


def test_a_round_does_not_come_back():
    log = Log().created(1).created(2).created(3).later(50).moved(2).check(2, ()).check(1, ())
    assert log.verdicts()[0] == (1, False, c.NO_TRIGGER)


def test_of_two_that_are_watched_at_the_same_time_either_comes_first():
    log = Log().status(c.INITIAL, 1).status(c.CHECK, 1).created(2).progress(1).check(1)
    log.later(50).moved(2).check(2, ()).check(1, ()).say(c.ROUND_OVER)
    assert log.verdicts() == [(1, True, None), (2, True, None)]


def test_a_check_without_progress_found_no_leader():
    log = Log().created(1, partitions=2).later(50).status(c.CHECK, 1).later(200).moved(1)
    log.status(c.CHECK, 1, NOT_LED)
    assert log.verdicts() == [(1, True, None)]


def test_progress_that_comes_late_still_counts():
    log = Log().created(1).later(50).moved(1).status(c.CHECK, 1).later(3_000).moved(2).progress(1, ())
    assert log.verdicts() == [(1, True, None)]


def test_a_committed_record_is_awaited_by_nobody():
    log = Log().created(1).later(50).moved(1).check(1, (2,))
    assert log.verdicts() == [(1, False, c.AWAITED_WHEN_COMMITTED)]


def test_too_few_replicas_after_the_append():
    log = Log().created(1, partitions=2).later(50).moved(1).check(1, ()).status(c.CHECK, 1, TOO_FEW)
    assert log.verdicts() == [(1, True, None)]


def test_one_that_failed_when_it_was_appended_keeps_its_error():
    log = Log().status(c.INITIAL, 1, (False, 87), partitions=2).status(c.CHECK, 1, (False, 87))
    assert log.verdicts() == [(1, True, None)]


def test_an_offset_that_is_written_again_is_another_produce():
    log = Log().created(1).later(50).status(c.CHECK, 1).later(200).say(c.FOLLOWER)
    log.say(c.LEADER, high_watermark=0).created(1).later(50).moved(1).check(1, ()).say(c.ROUND_OVER)
    assert log.verdicts() == [(1, None, None), (1, True, None)]


def test_a_log_that_begins_in_the_middle_proves_nothing_about_what_it_does_not_show():
    log = Log()
    log.checker = PurgatoryChecker(rules_for("2.8.2"))
    log.check(1, ()).later(5_000).moved(9).later(500).moved(10)
    assert log.verdicts() == [(1, None, None)]


def test_since_40_progress_stands_for_the_check():
    log = Log("4.3.1").progress(1).progress(1).later(50).moved(1).progress(1, ())
    assert log.verdicts() == [(1, True, None)]
    log = Log("4.3.1").progress(1).progress(1).later(50).moved(1).progress(1, ()).later(50).moved(2).progress(1, ())
    assert log.verdicts() == [(1, False, c.CHECKED_WHEN_DONE)]


def test_since_40_leadership_that_ends_settles_without_a_line():
    log = Log("4.3.1").progress(1).progress(1).later(50).say(c.FOLLOWER).later(900).say(c.LEADER, high_watermark=5)
    assert log.later(500).moved(6).later(500).moved(7).verdicts() == [(1, True, None)]


def test_before_10_a_follower_fetch_has_produces_checked():
    log = Log("0.10.2.2").status(c.INITIAL, 1).status(c.CHECK, 1).status(c.CHECK, 1).later(20)
    log.say(c.RECORDED).status(c.CHECK, 1).say(c.ROUND_OVER).later(20)
    log.moved(1).status(c.CHECK, 1).say(c.ROUND_OVER)
    assert log.verdicts() == [(1, True, None)]


def test_before_20_an_expiry_leaves_no_line():
    log = Log("0.10.2.2").status(c.INITIAL, 1).status(c.CHECK, 1).status(c.CHECK, 1).later(5_000).moved(1)
    assert log.say(c.ROUND_OVER).later(500).moved(2).verdicts() == [(1, None, None)]
