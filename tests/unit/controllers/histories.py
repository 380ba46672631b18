"""Legal histories, drawn at random."""

from __future__ import annotations

from hypothesis import strategies as st

from highwater.pipelines.controllers.kraft_partition import APPLIED
from highwater.pipelines.controllers.zk_machines import Table
from highwater.pipelines.kafka.controller_rows import LeadershipRow, RecordRow, StateRow
from tests.unit.controllers.build import SECOND, line, record, ref, state


@st.composite
def machine_rows(draw: st.DrawFn, table: Table, replica_id: int | None = None) -> list[StateRow]:
    """A walk along the table, with refusals, controllers that change and states that a new controller sets anew."""
    states = sorted(table)
    current, controller, epoch = draw(st.sampled_from(states)), 1, 1
    rows: list[StateRow] = []
    for at in range(draw(st.integers(1, 25))):
        if draw(st.integers(0, 6)) == 0:
            controller, epoch, current = draw(st.integers(1, 3)), epoch + 1, draw(st.sampled_from(states))
        target = draw(st.sampled_from(states))
        legal = current in table[target]
        values = {"broker_id": controller, "controller_epoch": epoch, "replica_id": replica_id, "succeeded": legal}
        rows.append(state(at * 1000, current, target, ref=ref(at), **values))
        current = target if legal else current
    return rows


@st.composite
def kraft_records(draw: st.DrawFn) -> list[RecordRow]:
    """Changes of a partition as KRaft makes them, and incarnations of its topic one after the other."""
    rows: list[RecordRow] = []
    offset = 0
    for incarnation in range(draw(st.integers(1, 3))):
        leader, epoch, isr = 1, 0, (1, 2, 3)
        for partition_epoch in range(draw(st.integers(1, 12))):
            offset += draw(st.integers(1, 5))
            recovering = False
            if partition_epoch:
                kind = draw(st.sampled_from(("isr", "elect", "offline", "unclean", "bump")))
                if kind == "isr" and leader >= 0:
                    isr = tuple(sorted({leader, *draw(st.sets(st.integers(1, 3)))}))
                elif kind == "elect":
                    leader, epoch = draw(st.sampled_from(isr)), epoch + 1
                elif kind == "offline" and leader >= 0:
                    leader, epoch, isr = -1, epoch + 1, (leader,)
                elif kind == "unclean":
                    leader, epoch, recovering = draw(st.integers(1, 3)), epoch + 1, True
                    isr = (leader,)
                elif kind == "bump":
                    epoch += 1
            values = {"topic_id": f"id{incarnation}", "elr": (), "recovering": recovering, "committed": True}
            rows.append(record(offset, leader, epoch, partition_epoch, isr=isr, **values))
    return rows


@st.composite
def applied_rows(draw: st.DrawFn) -> list[LeadershipRow]:
    """What brokers logged of such a history: late, in any order among brokers, some of it twice."""
    rows: list[LeadershipRow] = []
    for one in draw(kraft_records()):
        for broker_id in draw(st.lists(st.integers(1, 3), max_size=3)):
            late = one.time_us + draw(st.integers(0, 20)) * SECOND
            values = {
                key: getattr(one, key) for key in ("topic_id", "leader", "leader_epoch", "partition_epoch", "isr")
            }
            rows.append(line(late, draw(st.sampled_from(sorted(APPLIED))), broker_id, **values))
    return rows


@st.composite
def zk_decisions(draw: st.DrawFn) -> list[LeadershipRow]:
    """What ZooKeeper controllers decide and send; topics without ids are deleted and made anew seconds later."""
    rows: list[LeadershipRow] = []
    time_us, controller, session = 0, 1, 1
    for _ in range(draw(st.integers(1, 3))):
        leader, epoch, isr = 1, 0, (1, 2, 3)
        for version in range(draw(st.integers(1, 10))):
            if draw(st.integers(0, 5)) == 0:
                controller, session = draw(st.integers(1, 3)), session + 1
            if version and draw(st.booleans()):
                leader, epoch = draw(st.sampled_from((-1, 1, 2, 3))), epoch + 1
            elif version:
                isr = tuple(sorted({abs(leader), *draw(st.sets(st.integers(1, 3)))}))
            for _ in range(draw(st.integers(1, 3))):
                time_us += draw(st.integers(1, 50)) * 1000
                values = {"leader": leader, "leader_epoch": epoch, "partition_epoch": version, "isr": isr}
                rows.append(line(time_us, "controller", controller, controller_epoch=session, **values))
        time_us += SECOND
    return rows
