"""What one broker alone says hides nothing and proves nothing; what two say counts."""

from __future__ import annotations

from collections.abc import Callable, Collection
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.rules.history import FactHistory
from highwater.pipelines.rules.partition_audit import CannotGoOn, PartitionAudit
from highwater.pipelines.rules.proofs.lone_lines import Deletions, lone_lines
from highwater.pipelines.rules.registry import BY_ID
from highwater.pipelines.rules.rule import OPEN, VIOLATION
from highwater.schemas import audit_facts as a
from highwater.schemas.audit_facts import Fact
from tests.examples import examples
from tests.unit.rules.facts import acked, cases, decided, fact, follows, leads, settings
from tests.unit.rules.test_committed_data_lost import UNCLEAN

RULE = BY_ID["committed-data-lost"]


def deleted(second: float, broker_id: int) -> Fact:
    return fact(a.LEADERSHIP, second, broker_id, name="stopped")


def severities(*facts: Fact) -> list[str]:
    return [case.severity for case in cases(RULE, list(facts))]


def lone(*facts: Fact, is_running: bool = False, client_free_files: Collection[str] = ()) -> list[Fact]:
    history = FactHistory(is_running=lambda *_: is_running, client_free_files=client_free_files)
    for one in sorted(facts, key=lambda each: each.time_us):
        history.add(one)
    return list(lone_lines(history).lines)


def test_one_line_of_a_deletion_leaves_a_loss_open() -> None:
    (case,) = cases(RULE, [*UNCLEAN, deleted(20.5, 1)])
    assert (case.severity, case.offset_start, case.offset_end) == (OPEN, 100, 120)
    assert case.message.endswith(
        "Open, as broker 1 says that its log was deleted, and later lines or files have that log."
    )
    assert (1, 20_500_000) in {(ref.broker_id, ref.time_us) for ref in case.evidence}


def created(second: float, broker_id: int) -> Fact:
    """A broker begins to follow with an empty log."""
    return follows(second, broker_id, 0, offset=0, high_watermark=0)


def test_deletions_that_brokers_confirm_count_if_the_logs_are_gone() -> None:
    gone = [deleted(20.5, 1), created(20.55, 1), deleted(20.6, 2), created(20.65, 2)]
    assert lone(*UNCLEAN[:3], *gone) == []
    # An hour later it is another one.
    assert lone(*UNCLEAN[:3], deleted(20.5, 1), deleted(4000, 2)) == [deleted(20.5, 1), deleted(4000, 2)]


#: A client writes into lines of both brokers that the log was deleted.
FORGED = [deleted(20.5, 1), deleted(20.6, 2)]


def test_deletions_of_logs_that_are_served_later_hide_nothing() -> None:
    (case,) = cases(RULE, [*UNCLEAN, *FORGED])
    assert (case.severity, case.offset_start, case.offset_end) == (OPEN, 100, 120)
    assert case.message.endswith("says that its log was deleted, and later lines or files have that log.")


#: What shows that broker 1 still has the log that it said to have deleted at 20.5.
CONTRADICTIONS = {
    "leads on": fact(a.LEADERSHIP, 30, 1, name="leader_update", leader=1, leader_epoch=0),
    "commits an ISR": fact(a.ISR_CHANGE, 30, 1, name="committed", isr=(1,), partition_epoch=2),
    "follows with records": follows(30, 1, 1, offset=120),
    "loads records": fact(a.LOADED, 30, 1, offset=120),
    "loads a high watermark": fact(a.LOADED, 30, 1, high_watermark=110),
    "keeps epochs on disk": fact(a.EPOCH_ENTRY, 99, 1, leader_epoch=0, offset=0),
    "answers a fetch": fact(a.FETCH, 30, 1, leader_epoch=0, high_watermark=90, latest_us=30_000_000, replica_id=2),
    "acknowledges": acked(30, 1, 50),
    "appends": fact(a.APPEND, 90, 1, offset=60, end_offset=61),
    "raises its high watermark": fact(a.HIGH_WATERMARK, 90, 1, name="updated", high_watermark=80),
    "keeps batches on disk": fact(a.BATCH, 99, 1, offset=0, end_offset=10),
}


def is_contradicted(*facts: Fact) -> bool:
    """Return True if a deletion among facts does not count, by the history or by what streams by."""
    history = FactHistory()
    for one in sorted(facts, key=lambda each: each.time_us):
        history.add(one)
    deletions = Deletions(history)
    for one in facts:
        deletions.see(one)
    return bool(lone_lines(history).contradicted or deletions.contradicted)


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_whatever_a_deleted_log_cannot_do_contradicts_its_deletion(name: str) -> None:
    before = [leads(1, 1, 0, 0), follows(2, 2, 0, offset=0), *FORGED]
    assert not is_contradicted(*before)
    assert is_contradicted(*before, CONTRADICTIONS[name])
    # Of another broker, or before, it says nothing.
    other = CONTRADICTIONS[name]._replace(broker_id=3)
    assert not is_contradicted(*before, other)
    if CONTRADICTIONS[name].kind not in (a.EPOCH_ENTRY, a.BATCH):
        early = CONTRADICTIONS[name]._replace(time_us=10_000_000, latest_us=10_000_000)
        assert not is_contradicted(*before, early)
    # A log that was created again is another one.
    assert not is_contradicted(*before, created(21, 1), CONTRADICTIONS[name])


@given(
    st.lists(st.sampled_from(sorted(CONTRADICTIONS)), min_size=1, unique=True),
    st.floats(20.1, 20.9),
    st.booleans(),
    st.integers(0, 1 << 32),
)
@examples(100)
def test_forged_deletions_never_make_a_loss_clean(names: list[str], second: float, both: bool, seed: int) -> None:
    forged = [deleted(second, 1), *([deleted(second + 0.05, 2)] if both else [])]
    facts = [*UNCLEAN, *forged, *(CONTRADICTIONS[name] for name in names)]
    random = Random(seed)
    kept = [line for line in facts if line in UNCLEAN or line in forged or random.random() < 0.7]
    if VIOLATION in severities(*(line for line in kept if line not in forged)):
        assert set(severities(*kept)) & {OPEN, VIOLATION}


def test_a_topic_id_that_comes_back_was_never_gone() -> None:
    """Clients write into lines of two brokers that the topic has another id; both name the old one later."""
    forged = [follows(35, 3, 0, topic_id="new"), leads(35, 2, 0, 0, topic_id="new")]
    third = [follows(2, 3, 0, topic_id="t", offset=0), follows(70, 3, 1, topic_id="t", offset=100)]
    assert severities(*IDS, *forged, *third) == [OPEN]
    second = [follows(2, 2, 0, topic_id="t", offset=0)]
    assert severities(*IDS, *second, *forged) == [OPEN]


def test_a_deletion_of_a_replica_that_was_moved_away_counts() -> None:
    away = fact(a.LEADERSHIP, 20, 9, name="controller", leader=2, leader_epoch=0, replicas=(2, 3))
    before = [*UNCLEAN[:3], follows(2, 2, 0, offset=0)]
    assert lone(*before, deleted(20.5, 1)) == [deleted(20.5, 1)]
    assert lone(*before, deleted(20.5, 1), away) == []


def test_one_brokers_log_alone_is_taken_as_it_is() -> None:
    alone = [one for one in UNCLEAN if one.broker_id == 1]
    assert severities(*alone, deleted(20.5, 1)) == []


IDS = [
    leads(1, 1, 0, 0, topic_id="t"),
    acked(30, 1, 150),
    leads(40, 2, 1, 100, topic_id="t"),
    follows(60, 1, 1, topic_id="t"),
]


def test_a_topic_id_that_one_broker_names_once_begins_no_life_for_sure() -> None:
    assert severities(*IDS) == [VIOLATION]
    assert severities(*IDS, follows(35, 3, 0, topic_id="forged")) == [OPEN]
    named = [follows(35, 3, 0, topic_id="new"), leads(35, 2, 0, 0, topic_id="new")]
    assert severities(*IDS, *named) == []


def test_a_fall_to_an_earlier_epoch_that_one_broker_tells_begins_no_life_for_sure() -> None:
    later = [
        one._replace(leader_epoch=one.leader_epoch + 1) if one.leader_epoch is not None else one for one in UNCLEAN
    ]
    known = [follows(1.5, 2, 1), *later]
    assert severities(*known) == [VIOLATION]
    forged = leads(22.5, 1, 0, 0)
    assert OPEN in severities(*known, forged)
    assert VIOLATION not in severities(*known, forged)
    assert lone(*known, forged) == [forged]
    assert lone(*known, forged, deleted(22.4, 2), created(22.45, 2)) == []


def test_the_metadata_log_is_no_text() -> None:
    record = fact(a.METADATA, 35, 3, topic_id="new", leader_epoch=0, partition_epoch=0, leader=3, isr=(3,))
    assert severities(*IDS, follows(35, 3, 0, topic_id="new"), record) == []


def test_such_a_partition_is_judged_whole() -> None:
    audit = PartitionAudit(settings(), [RULE])
    for one in sorted([*UNCLEAN, deleted(25, 1)], key=lambda each: (a.RANK[each.kind], each.time_us)):
        audit.add(one)
    with pytest.raises(CannotGoOn, match="one broker alone"):
        audit.freeze()


def test_an_epoch_that_one_broker_alone_names_proves_no_loss() -> None:
    """A client's text in a line of broker 3: it led in epoch 7, from offset 0."""
    life = {"topic_id": "t"}
    known = [leads(1, 1, 0, 0, **life), follows(2, 2, 0, **life), acked(21, 1, 99), follows(60, 1, 1, **life)]
    forged = leads(30, 3, 7, 0, **life)
    assert lone(*known, forged) == [forged]
    (case,) = cases(RULE, [*known, forged])
    assert (case.severity, case.offset_start) == (OPEN, 0)
    assert case.message.endswith("Open, as broker 3 says, and no other broker, that it led in such an epoch.")
    assert lone(*known, forged, follows(31, 2, 7)) == []
    assert severities(*known, forged, follows(31, 2, 7)) == [VIOLATION]


def test_an_epoch_that_only_its_leaders_name_proves_no_two_leaders() -> None:
    """A client's text in lines of brokers 2 and 3: each led in epoch 7."""
    life = {"topic_id": "t"}
    known = [leads(1, 1, 0, 0, **life), follows(2, 2, 0, **life), follows(60, 1, 1, **life)]
    forged = [leads(30, 2, 7, 0, **life), leads(31, 3, 7, 0, **life)]
    rule = BY_ID["two-leaders-one-epoch"]
    assert lone(*known, *forged) == forged
    assert [case.severity for case in cases(rule, [*known, *forged])] == [OPEN]
    followed = follows(32, 1, 7, **life)
    assert [case.severity for case in cases(rule, [*known, *forged, followed])] == [VIOLATION]


def test_epochs_that_a_file_names_are_known() -> None:
    entry = fact(a.EPOCH_ENTRY, 99, 3, leader_epoch=7, offset=0)
    lines = [leads(30, 3, 7, 0), follows(60, 2, 1)]
    assert lone(*lines) == lines[:1]
    assert lone(*lines, entry) == []


def test_an_epoch_that_only_its_leader_names_is_as_logged_if_no_log_would_have_it() -> None:
    assert lone(leads(1, 1, 0, 0), leads(2, 2, 1, 100), follows(3, 1, 1)) == []
    assert lone(leads(1, 1, 0, 0), leads(20, 2, 1, 100)) == []
    # A replica that followed in an epoch before would log the next one while it runs. A controller may not.
    before, last = leads(1, 1, 0, 0), leads(20, 3, 1, 0)
    assert lone(before, follows(1, 2, 0), last, is_running=True) == [last]
    assert lone(before, follows(1, 2, 0), last, is_running=False) == []
    assert lone(before, decided(1, 0, 0, 1, (1, 2)), last, is_running=True) == []


#: How other sources name an epoch with its leader and the offset of its start.
CONFIRMATIONS: dict[str, Callable[[int, int, int], Fact]] = {
    "a replica": lambda epoch, leader, _: follows(30.1, 2, epoch, leader=leader),
    "a controller": lambda epoch, leader, _: decided(30.1, epoch, epoch, leader, (1, 2, 3)),
    "a metadata log": lambda epoch, leader, _: fact(a.METADATA, 30.1, 1, leader_epoch=epoch, leader=leader, isr=(1, 2)),
    "a file of epochs": lambda epoch, _, offset: fact(a.EPOCH_ENTRY, 99, 2, leader_epoch=epoch, offset=offset),
}


@given(
    last=st.integers(1, 5),
    epoch=st.integers(0, 8),
    broker_id=st.integers(1, 3),
    second=st.floats(5, 99),
    offset=st.integers(0, 50),
    of_controller=st.booleans(),
)
@examples(200)
def test_no_start_that_only_its_leader_names_makes_a_loss(
    last: int, epoch: int, broker_id: int, second: float, offset: int, of_controller: bool
) -> None:
    """Three brokers lead in turn, and nothing is lost. A forged start has any epoch, broker, time and offset."""
    life = {"topic_id": "t"}
    honest: list[Fact] = []
    for number in range(last + 1):
        leader, begin = 1 + number % 3, 10.0 * number
        honest.append(leads(begin, leader, number, 100 * number, high_watermark=100 * number, **life))
        named = {"leader": leader, **life}
        honest += [follows(begin + 0.01 * one, one, number, **named) for one in (1, 2, 3) if one != leader]
        honest += [decided(begin, number, number, leader, (1, 2, 3), **life)] if of_controller else []
        honest.append(acked(begin + 5, leader, 100 * number + 50))
    told = settings(is_running=lambda *_: True)

    def judged(*facts: Fact) -> list[str]:
        return [case.severity for case in cases(RULE, list(facts), told)]

    assert judged(*honest) == []
    forged = leads(second, broker_id, epoch, offset, **life)
    is_of_leader = broker_id == 1 + epoch % 3 and epoch <= last
    assert forged in lone(*honest, forged, is_running=True) or (is_of_leader and offset == 100 * epoch)
    assert VIOLATION not in judged(*honest, forged)
    # The start of a true loss counts.
    lost = leads(10.0 * last + 9, 3, last + 1, 40, **life)
    witness = follows(10.0 * last + 9.1, 1, last + 1, leader=3, **life)
    assert VIOLATION in judged(*honest, lost, witness)
    assert judged(*honest, lost, witness, forged)


@pytest.mark.parametrize("name", CONFIRMATIONS)
def test_other_sources_confirm_the_start_of_their_leader_and_offset_only(name: str) -> None:
    known = [leads(1, 1, 0, 0), follows(2, 2, 0, leader=1)]
    start = leads(30, 3, 1, 70)
    confirm = CONFIRMATIONS[name]
    assert lone(*known, start, is_running=True) == [start]
    assert lone(*known, start, confirm(1, 3, 70), is_running=True) == []
    assert lone(*known, start, confirm(1, 1, 100)) == [start]


def test_a_lone_start_counts_in_a_file_in_which_no_client_can_write() -> None:
    known = [leads(1, 1, 0, 0), follows(2, 2, 0), decided(3, 1, 1, 2, (1, 2)), follows(60, 1, 1, leader=2)]
    second, again, behind = leads(30, 3, 1, 70), leads(31, 1, 0, 70), leads(32, 3, 7, 0)
    forged = [second, again, behind]
    assert set(lone(*known, *forged, is_running=True)) == {known[0], *forged}
    assert lone(*known, *forged, is_running=True, client_free_files={"b1", "b3"}) == []
    assert lone(*known, *forged, is_running=True, client_free_files={"b1"}) == [second, behind]


def test_a_broker_that_starts_again_in_an_epoch_loads_its_log() -> None:
    known = [leads(1, 1, 0, 0), follows(2, 2, 0, leader=1)]
    again = leads(30, 1, 0, 70)
    assert lone(*known, again) == [known[0], again]
    assert lone(*known, fact(a.LOADED, 20, 2, offset=70), again) == [known[0], again]
    assert lone(*known, fact(a.LOADED, 20, 1, offset=70), again) == []
    assert lone(*known, leads(30, 1, 0, 0)) == []
