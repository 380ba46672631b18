"""Causes of a new leader without committed records, or possibly without them.

If answers show what was committed, the cause is the chain that led to the leader's shorter log. Without answers to
producers and followers, lines can show that a leader's log ended before another replica's (`short_logs`). Whether
records are lost then remains open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from highwater.pipelines.base.instants import NEVER_US
from highwater.pipelines.base.values import instant
from highwater.pipelines.kafka.versions import rules_for
from highwater.pipelines.rules.history import FactHistory
from highwater.pipelines.rules.known_bugs import bugs_of
from highwater.pipelines.rules.leader_epoch import Epoch
from highwater.pipelines.rules.proofs.fetch_chain import written_before
from highwater.pipelines.rules.proofs.own_lines import OWN_ROLES
from highwater.pipelines.rules.proofs.unclean import UNCLEAN_ELECTION, in_sync_before, unclean_election
from highwater.pipelines.rules.rule import Settings
from highwater.schemas import audit_facts as a
from highwater.schemas.audit_facts import Fact

TRUNCATED_TO_HIGH_WATERMARK = "truncated_to_high_watermark"
TRUNCATED = "truncated"
SHORTER_LOG = "shorter_log"
#: The leader's broker crashed, and came back without records that no flush had reached: power or host.
CRASHED = "crash"
#: The leader's broker came back without any of its log: its disk was replaced, or the folder deleted.
EMPTIED = "disk"
#: `Fact.detail` of a cut by which a broker recovers a log with a damaged end.
CORRUPTION = "corruption"
LOSS = "committed-data-lost"
KAFKA_1211 = "KAFKA-1211"


class Cause(NamedTuple):
    """The cause of a possible loss of committed records."""

    name: str  #: one of the names above
    text: str  #: the chain in a sentence or two
    facts: tuple[Fact, ...]  #: lines that show it
    known_bug: str | None = None  #: JIRA, where the chain is that bug's


def cause_of(
    history: FactHistory,
    settings: Settings,
    lost_by: Epoch,
    offset_start: int,
    offset_end: int,
    committed: Iterable[Fact] = (),
) -> Cause:
    """Return the cause of a loss of committed records.

    Args:
        lost_by: the first epoch that lacks the records.
        offset_start: start offset of that epoch.
        offset_end: end of the lost offsets, exclusive.
        committed: lines that show what was committed.
    """
    crash = _find_crash(history, lost_by, offset_end, committed)
    if crash is not None:
        return crash
    unclean = unclean_election(history, lost_by)
    if unclean is not None:
        text = unclean.told(lost_by.number, settings.unclean_allowed(unclean.leader))
        return Cause(UNCLEAN_ELECTION, text, unclean.facts)
    leader = lost_by.leader
    if leader is None:
        return Cause(SHORTER_LOG, "The logs do not show why the new leader's log was shorter.", ())
    truncation = _find_truncation(history, lost_by, leader, offset_start, offset_end)
    named = lost_by.named.get(leader)
    elected_by = (named,) if named is not None else ()
    elected_text = f", and was later elected leader (epoch {lost_by.number})."
    if truncation is None:
        before = in_sync_before(history, lost_by, leader)
        how = ", though it was elected from the ISR" if before is not None else "; the logs do not show its election"
        return Cause(SHORTER_LOG, f"The log of broker {leader} ended at {offset_start}{how}.", elected_by)
    followed = "" if truncation.leader is None else f" when it started to follow broker {truncation.leader}"
    dropped = f"Broker {leader} dropped the records at {instant(truncation.time_us):%H:%M:%S}{followed}"
    # The lines of the truncation itself, which the replayed one only explains.
    lines = tuple(
        fact
        for fact in history.facts[a.TRUNCATION]
        if fact.name != "replayed" and fact.broker_id == leader and fact.offset == truncation.offset
    )[:2]
    if truncation.detail == "to_high_watermark":
        text = f"{dropped} (truncated to its high watermark {truncation.offset}){elected_text}"
        # Later ones do so only where they know no epoch to ask for.
        bugs = {bug.jira for bug in bugs_of(LOSS, settings.version(leader, truncation.time_us))}
        known_bug = KAFKA_1211 if KAFKA_1211 in bugs else None
        return Cause(TRUNCATED_TO_HIGH_WATERMARK, text, (*lines, *elected_by), known_bug)
    text = f"{dropped} (truncated to {truncation.offset}){elected_text}"
    return Cause(TRUNCATED, text, (*lines, *elected_by))


def _find_crash(history: FactHistory, lost_by: Epoch, offset_end: int, committed: Iterable[Fact]) -> Cause | None:
    """Return the cause if the leader lost the end of its own log, in a crash or with its disk. None otherwise.

    The log was loaded with the end at which the broker then led. Before, its own line showed a higher end, or it was in
    the ISR and so had all committed records. It truncated nothing in between.
    """
    start = lost_by.start
    if start is None or start[1].broker_id is None:
        return None
    leader, led = start[1].broker_id, start[1]
    loads = [line for line in history.facts[a.LOADED] if line.broker_id == leader and line.offset is not None]
    load = max((line for line in loads if written_before(line, led)), key=_get_time, default=None)
    if load is None or load.offset != start[0]:
        return None
    own = (*history.facts[a.LEADERSHIP], *history.facts[a.ISR_CHANGE], *history.facts[a.LOADED], *committed)
    earlier = [line for line in own if line.broker_id == leader and written_before(line, load)]
    last = max(earlier, key=_get_reached, default=None)
    cuts = [line for line in history.facts[a.TRUNCATION] if line.name == "log" and line.broker_id == leader]
    followed = [cut for cut in cuts if cut.detail != CORRUPTION and (cut.offset or 0) <= start[0]]
    if last is not None and _get_reached(last) > start[0]:
        if any(written_before(last, cut) and written_before(cut, led) for cut in followed):
            return None
        if _get_reached(last) < offset_end and unclean_election(history, lost_by) is not None:
            return None  # Beyond that the broker may never have had the records.
        shown, how = (last,), f"before, it had reached {_get_reached(last)} at least"
    elif not followed and (before := in_sync_before(history, lost_by, leader)) is not None:
        shown, how = (before.fact,), "as a replica in sync it had had all that was committed"
    else:
        return None
    torn = tuple(
        cut for cut in cuts if cut.detail == CORRUPTION and cut.offset == start[0] and written_before(cut, load)
    )
    text = (
        f"Broker {leader}'s log ended at {start[0]} as it was loaded{', with a damaged end' if torn else ''}; {how}. "
        f"{_HOW[start[0] == 0]}, not an election.{_describe_survivors(history, lost_by, leader, start[0])}"
    )
    return Cause(EMPTIED if start[0] == 0 else CRASHED, text, (*shown, *torn[:1], load, led))


_HOW: Final = {
    False: "A crash took the end of its log before the disk had it (power or host)",
    True: "Its disk was replaced or the folder of its log deleted",
}


def _describe_survivors(history: FactHistory, lost_by: Epoch, leader: int, start: int) -> str:
    """Return a sentence about followers that still had the records when they began to follow the leader."""
    ends: dict[int, int] = {}
    for line in history.facts[a.LEADERSHIP]:
        follows = line.name == "follower_start" and line.leader_epoch == lost_by.number and line.broker_id != leader
        if follows and line.broker_id is not None and (line.offset or 0) > start:
            ends[line.broker_id] = max(line.offset or 0, ends.get(line.broker_id, 0))
    if not ends:
        return " No line shows another replica that still had these records."
    named = ", ".join(f"broker {broker_id} up to {end}" for broker_id, end in sorted(ends.items()))
    return f" Other replicas still had records beyond as they began to follow it: {named}."


def _get_reached(line: Fact) -> int:
    """Return the highest offset that a line shows in a replica's log. -1 if it shows none."""
    end = line.end_offset if line.kind == a.OPERATION else line.offset
    return max(-1 if end is None else end, -1 if line.high_watermark is None else line.high_watermark)


def _find_truncation(
    history: FactHistory, lost_by: Epoch, leader: int, offset_start: int, offset_end: int
) -> Fact | None:
    """Return the leader's last replayed truncation into the lost offsets, in an earlier epoch, or None."""
    truncations = [
        fact
        for fact in history.facts[a.TRUNCATION]
        if fact.name == "replayed"
        and fact.broker_id == leader
        and fact.offset is not None
        and fact.offset <= offset_end
        and fact.offset >= offset_start
        and (fact.leader_epoch is None or fact.leader_epoch < lost_by.number)
    ]
    return max(truncations, key=lambda fact: (fact.leader_epoch or 0, fact.time_us), default=None)


_NOT_ALLOWED = "not_allowed"
_OPEN = "the logs do not show whether records after that were committed."


class ShortLog(NamedTuple):
    """A leader's log that may lack committed records."""

    #: incarnation, epoch: the leader's epoch, of the topic's life; None where no line names it
    incarnation: int
    epoch: Epoch | None
    start: int | None  #: where its log ended; None if unknown
    end: int | None  #: end of another replica's log, or its high watermark; None if unknown
    what: str  #: sentences: facts that lines show, and open questions
    facts: tuple[Fact, ...]  #: the lines


def high_watermark_cuts(history: FactHistory, settings: Settings) -> list[Fact]:
    """Return truncations by followers whose version truncates to the high watermark (before 0.11)."""
    return [fact for fact in history.facts[a.TRUNCATION] if _is_to_high_watermark(fact, settings)]


def short_logs(history: FactHistory, settings: Settings) -> Iterator[ShortLog]:
    """Yield leaders whose logs were shorter than other replicas' logs."""
    yield from _find_refused(history)
    cuts = high_watermark_cuts(history, settings)
    roles = [fact for fact in history.facts[a.LEADERSHIP] if fact.name in OWN_ROLES and fact.leader_epoch is not None]
    for incarnation, epoch in history.epochs():
        yield from _find_unclean(history, incarnation, epoch)
        if cuts and epoch.bound is None:
            yield from _find_loaded(history, incarnation, epoch, roles, cuts)


def _find_refused(history: FactHistory) -> Iterator[ShortLog]:
    """Yield followers that halted instead of truncating their logs (KAFKA-3410)."""
    places = set()
    for fact in history.facts[a.TRUNCATION]:
        place = fact.broker_id, fact.offset, fact.end_offset
        if fact.detail == _NOT_ALLOWED and None not in place and place not in places:
            places.add(place)
            what = (
                f"The log of broker {fact.broker_id} ended at {fact.end_offset}, its leader's at {fact.offset}: {_OPEN}"
            )
            incarnation = history.incarnation(fact.time_us)
            known = (epoch for life, epoch in history.epochs() if life == incarnation and epoch.start is not None)
            epoch = next((epoch for epoch in known if epoch.start and epoch.start[0] == fact.offset), None)
            start = () if epoch is None or epoch.start is None else (epoch.start[1],)
            yield ShortLog(incarnation, epoch, fact.offset, fact.end_offset, what, (fact, *start))


def _find_unclean(history: FactHistory, incarnation: int, epoch: Epoch) -> Iterator[ShortLog]:
    """Yield elections from outside the ISR, unless an ISR member is known to have no longer log."""
    elected = unclean_election(history, epoch)
    if elected is None or history.incarnation(elected.facts[0].time_us) != incarnation:
        return
    ends = [
        fact.offset
        for fact in history.facts[a.LEADERSHIP]
        if fact.name == "follower_start" and fact.leader_epoch == epoch.number and fact.broker_id in (elected.isr or ())
    ]
    start = epoch.start
    if start is not None and any(end is not None and 0 < end <= start[0] for end in ends):
        return
    at = "" if start is None else f", with a log that ended at {start[0]}"
    what = f"Unclean election: {elected.elected} in epoch {epoch.number}{at}: {_OPEN}"
    line = () if start is None else (start[1],)
    yield ShortLog(incarnation, epoch, None if start is None else start[0], None, what, (*elected.facts, *line))


def _find_loaded(
    history: FactHistory, incarnation: int, epoch: Epoch, roles: list[Fact], cuts: list[Fact]
) -> Iterator[ShortLog]:
    """Yield a leader of up to 0.10 that loaded a log shorter than a high watermark a follower truncated to.

    Up to 0.10 no line shows where an epoch begins.
    """
    leader = epoch.leader
    leads = min((fact for fact in roles if _is_role(fact, leader, epoch)), key=_get_time, default=None)
    if leader is None or leads is None or history.incarnation(leads.time_us) != incarnation:
        return
    loads = [fact for fact in history.facts[a.LOADED] if fact.broker_id == leader and written_before(fact, leads)]
    load = max(loads, key=_get_time, default=None)
    # A log that is created for an assigned replica is also loaded, empty.
    if load is None or not load.offset or _has_later_role(roles, load, leads):
        return
    followers = {
        cut.broker_id: (role, cut)
        for cut in cuts
        if (cut.offset or 0) > load.offset and (role := _find_follow(history, roles, cut, epoch)) is not None
    }
    if followers:
        ends = {broker_id: cut.offset or 0 for broker_id, (_, cut) in followers.items()}
        said = ", ".join(f"broker {broker_id} to {end}" for broker_id, end in sorted(ends.items()))
        what = (
            f"Broker {leader}'s log ended at {load.offset} as it was loaded, before it led in epoch {epoch.number}; "
            f"followers of it then cut their logs to their high watermarks, {said}. What they had committed beyond "
            f"{load.offset} is lost, unless broker {leader} copied it in between. The logs do not show that."
        )
        lines = [line for _, pair in sorted(followers.items()) for line in pair]
        yield ShortLog(incarnation, epoch, load.offset, max(ends.values()), what, (load, leads, *lines))


def outlived_logs(
    history: FactHistory, settings: Settings, fetched: Mapping[tuple[int | None, int], int]
) -> Iterator[ShortLog]:
    """Yield leaders that truncated their logs, fetched nothing before they led, and have followers with longer logs.

    Before KIP-101 such a leader may have dropped committed records.

    Args:
        fetched: time of a replica's first fetch after a truncation, by (replica, time of the truncation).
    """
    if not (cuts := high_watermark_cuts(history, settings)):
        return
    roles = [fact for fact in history.facts[a.LEADERSHIP] if fact.name in OWN_ROLES and fact.leader_epoch is not None]
    for incarnation, epoch in history.epochs():
        yield from _find_outlived(history, incarnation, epoch, roles, cuts, fetched)


def _find_outlived(
    history: FactHistory,
    incarnation: int,
    epoch: Epoch,
    roles: list[Fact],
    cuts: list[Fact],
    fetched: Mapping[tuple[int | None, int], int],
) -> Iterator[ShortLog]:
    """Yield the leader of one epoch if `outlived_logs` applies to it."""
    leader = epoch.leader
    leads = min((fact for fact in roles if _is_role(fact, leader, epoch)), key=_get_time, default=None)
    if leader is None or leads is None or history.incarnation(leads.time_us) != incarnation:
        return
    own_cuts = [cut for cut in cuts if cut.broker_id == leader and written_before(cut, leads)]
    cut = max(own_cuts, key=_get_time, default=None)
    if cut is None or fetched.get((cut.broker_id, cut.time_us), NEVER_US) < leads.time_us:
        return
    start, line = epoch.bound or (cut.offset or 0, cut)
    longer: dict[int | None, tuple[Fact, Fact]] = {}
    for load in history.facts[a.LOADED]:
        following = [fact for fact in roles if fact.broker_id == load.broker_id and written_before(load, fact)]
        role = min(following, key=_get_time, default=None)
        is_longer = (load.offset or 0) > start and leader != load.broker_id
        if is_longer and role is not None and (role.leader_epoch, role.leader) == (epoch.number, leader):
            longer[load.broker_id] = load, role
    if longer:
        ends = {broker_id: load.offset or 0 for broker_id, (load, _) in longer.items()}
        said = ", ".join(f"broker {broker_id} up to {end}" for broker_id, end in sorted(ends.items()))
        what = (
            f"Broker {leader} cut its log to {cut.offset} before it led in epoch {epoch.number}. No line shows that it "
            f"fetched in between. Others had records beyond {start}: {said}. The logs do not show whether these "
            "records were committed."
        )
        lines = [fact for _, pair in sorted(longer.items()) for fact in pair]
        yield ShortLog(incarnation, epoch, start, max(ends.values()), what, (line, leads, *lines))


def _is_to_high_watermark(cut: Fact, settings: Settings) -> bool:
    """Return True if the truncation is by a follower of a release that truncates to its high watermark."""
    version = settings.version_of(cut) if cut.name == "log" else None
    return version is not None and rules_for(version).truncates_to_high_watermark


def _find_follow(history: FactHistory, roles: list[Fact], cut: Fact, epoch: Epoch) -> Fact | None:
    """Return the line by which a broker began to follow an epoch, when it truncated its log (`cut`).

    None if it may have followed before a restart: then it had already copied records of that epoch.
    """
    role = min((fact for fact in roles if _is_role(fact, cut.broker_id, epoch)), key=_get_time, default=None)
    if role is None or written_before(cut, role) or role.leader != epoch.leader or role.leader == cut.broker_id:
        return None
    loads = [fact for fact in history.facts[a.LOADED] if fact.broker_id == cut.broker_id and written_before(fact, cut)]
    has_moved = any(
        line.broker_id == cut.broker_id and (line.leader_epoch or 0) > epoch.number and not written_before(cut, line)
        for line in roles
    )
    return None if has_moved or any(written_before(role, load) for load in loads) else role


def _is_role(role: Fact, broker_id: int | None, epoch: Epoch) -> bool:
    return role.broker_id == broker_id and role.leader_epoch == epoch.number


def _has_later_role(roles: list[Fact], load: Fact, leads: Fact) -> bool:
    """Return True if the broker may have changed its role between loading its log and leading."""
    return any(
        fact.broker_id == load.broker_id and not written_before(fact, load) and written_before(fact, leads)
        for fact in roles
    )


def _get_time(fact: Fact) -> int:
    return fact.time_us
