"""Several brokers in one file: one after the other, or all at a time."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.bronze.lives import LifeWatch
from highwater.pipelines.bronze.passes import ITEMS, span_of
from highwater.pipelines.bronze.profile import Profile
from highwater.pipelines.bronze.register import identify
from highwater.pipelines.bronze.rows import rows
from tests.reading import profiled

BEAN = "Registered kafka:type=kafka.Log4jController MBean (kafka.utils.Log4jControllerRegistration$)"
STARTING = "starting (kafka.server.KafkaServer)"
CLUSTER = "Cluster ID = W-CQybfSRP-OafW0EWRB0Q (kafka.server.KafkaServer)"
CONFIG = "KafkaConfig values: \n\tbroker.id = -1\n\tzookeeper.connect = zookeeper:2181\n (kafka.server.KafkaConfig)"
VERSION = "Kafka version: 2.8.1 (org.apache.kafka.common.utils.AppInfoParser)"
ROLLED = "Rolled new log segment at offset 2000 in 3 ms. (kafka.log.Log)"


def started(broker: int) -> str:
    return f"[KafkaServer id={broker}] started (kafka.server.KafkaServer)"


def life(broker: int) -> list[str]:
    stopped = f"[KafkaServer id={broker}] shut down completed (kafka.server.KafkaServer)"
    return [BEAN, STARTING, CLUSTER, CONFIG, VERSION, started(broker), ROLLED, stopped]


def written(folder: Path, messages: list[str]) -> Path:
    path = folder / "kafka.log"
    lines = [f"[2026-11-20 15:33:{at:02},394] INFO {message}\n" for at, message in enumerate(messages)]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def brokers_of(path: Path) -> tuple[list[int | None], str | None]:
    """The broker of each record as stored, and what is wrong with the file."""
    (item,) = profiled(str(path), "UTC", 1 << 20)
    made = ITEMS.thaw(ITEMS.freeze(item, ()), ())
    assert isinstance(made, Profile)
    identities, _ = identify([made], [], [])
    reading = span_of(made, identities[str(path)])
    batches = [batch.column("broker_id").to_pylist() for batch in rows([reading], "UTC", 1 << 20)]
    return [broker for batch in batches for broker in batch], identities[str(path)].problem


def test_a_container_that_came_back_with_a_new_id_has_two_lives(tmp_path: Path):
    first, second = [*life(1001), *life(1001)], life(1002)
    assert brokers_of(written(tmp_path, [*first, *second])) == ([1001] * len(first) + [1002] * len(second), None)


def test_a_file_of_one_broker_stays_one(tmp_path: Path):
    path = written(tmp_path, [*life(1), *life(1)[1:], CONFIG, ROLLED])
    assert brokers_of(path) == ([1] * 17, None)


def test_records_of_brokers_that_write_at_a_time_are_of_the_broker_that_they_name(tmp_path: Path):
    mixed = [BEAN, started(1), ROLLED, BEAN, started(2), started(1), ROLLED, started(2), started(2), started(1)]
    brokers, problem = brokers_of(written(tmp_path, mixed))
    assert brokers == [None, 1, None, None, 2, 1, None, 2, 2, 1]
    assert problem is not None
    assert problem.startswith("lines of brokers 1 and 2 are mixed: give each broker its own file")


def test_brokers_of_two_clusters_in_one_file_are_nobodys(tmp_path: Path):
    other = "Cluster ID = StFVvc9XQEetSc4jeax1NA (kafka.server.KafkaServer)"
    mixed = [started(1), CLUSTER, started(2), other, started(1), started(2)]
    brokers, _ = brokers_of(written(tmp_path, mixed))
    assert brokers == [None] * 6


def test_a_configuration_may_come_before_the_start(tmp_path: Path):
    def old(broker: int) -> list[str]:
        config = f"KafkaConfig values: \n\tbroker.id = {broker}\n (kafka.server.KafkaConfig)"
        return [config, "starting (kafka.server.KafkaServer)", f"[Kafka Server {broker}], started (kafka.server.X)"]

    assert brokers_of(written(tmp_path, [*old(1001), ROLLED, *old(1002)]))[0] == [1001] * 4 + [1002] * 3


def test_streams_that_a_wrapper_mixes_are_no_lives():
    watch = LifeWatch()
    for offset, broker in ((0, 1), (900, 1), (300, 2), (1200, 2)):
        watch.see(offset, b"starting" if broker == 2 else b"x", broker)
    assert watch.lives() == ()


def test_services_of_one_compose_file_are_no_lives(tmp_path: Path):
    path = tmp_path / "docker-compose.log"
    messages = [(1, message) for message in life(1)] + [(2, message) for message in life(2)]
    stamp = "[2026-11-20 15:33:{:02},394] INFO"
    texts = [f"kafka{broker}_1  | {stamp.format(at)} {text}" for at, (broker, text) in enumerate(messages)]
    texts = [text for pair in zip(texts[:8], texts[8:], strict=True) for text in pair if "\n" not in text]
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    made = profiled(str(path), "UTC", 1 << 20)
    assert len(made) == 2
    assert all(of_service.lives == () for of_service in made)


@given(st.lists(st.tuples(st.sampled_from((None, 1, 2)), st.booleans()), max_size=12))
def test_no_record_is_given_to_another_broker_than_it_names(records: list[tuple[int | None, bool]]):
    watch = LifeWatch()
    for offset, (broker, starts) in enumerate(records):
        watch.see(offset, b"starting" if starts else b"x", broker)
    lives = watch.lives()
    if lives:
        assert len({life.broker_id for life in lives}) == len(lives) > 1
        for offset, (broker, _) in enumerate(records):
            written_by = [life.broker_id for life in lives if life.offset <= offset][-1]
            assert broker in (None, written_by)
