"""Names of objects, pods and folders that stand for a broker."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from highwater.pipelines.bronze.broker_names import BrokerName, broker_name, brokers_of_names
from highwater.pipelines.bronze.identity import Hints
from highwater.pipelines.bronze.neighbours import FileEvidence, evidence, resolve


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("AWSLogs/1/KafkaBrokerLogs/eu/fares-5d7e9c1a-5/2026-11-20-16/Broker-2_16-00_02aa2bb2.log.gz", ("broker-", 2)),
        ("logs/kafka-0/server.log", ("kafka-", 0)),
        ("my-cluster-kafka-0.log", ("my-cluster-kafka-", 0)),
        ("my-cluster-broker-3/server.log", ("my-cluster-broker-", 3)),
        ("my-cluster-dual-role-0/current.log", ("my-cluster-dual-role-", 0)),
        ("compose.log#kafka1_1", ("kafka", 1)),
        ("kafka-9/broker-1/server.log", ("broker-", 1)),
        ("kafka-0.kafka-headless.ns.log", ("kafka-", 0)),
        ("opt/kafka_2.13-3.9.0/logs/server.log", None),
        ("kafka-3.9.0/server.log", None),
        ("kafka-2026-11-20.log", None),
        ("kafka.log.1", None),
        ("kafka-request.log.2026-11-20-14", None),
        ("kafka11x/server.log", None),
    ],
)
def test_a_name_that_stands_for_a_broker(path: str, name: tuple[str, int] | None):
    assert broker_name(path) == name


@pytest.mark.parametrize(
    ("path", "id"),
    [
        ("kafka2.txt", 2),
        ("broker-1-server.log.txt", 1),
        ("broker3.example.com.log", 3),
        ("broker_4.log", 4),
        ("Broker-2_16-00_02aa2bb2.log.gz", 2),
        ("logs/broker-id-5/server.log", 5),
        ("logs/brokerid5/server.log", 5),
        ("kafka-broker-6.out", 6),
        ("prod-kafka7.example.com/server.log", 7),
        ("compose.log#kafka1", 1),
        ("compose.log#broker2-1", 2),
        ("k8s.log#my-cluster-broker-3", 3),
        # a pod, a container, a host: not without others of its shape
        ("compose.log#kafka_3", None),
        ("kafka-0.log", None),
        ("my-cluster-kafka-2.log", None),
        ("kfk01.example.com/server.log", None),
        ("node-3/server.log", None),
        ("Server (3).log", None),
        ("server.log.2", None),
        ("server.log.2026-11-20-14", None),
        ("issue-13091/server.log", None),
        ("server-2026-11-20-1.log", None),
        ("kafka_2.13-3.9.0/logs/server.log", None),
        ("controller.log", None),
        ("kafka.out", None),
    ],
)
def test_an_id_by_a_name_alone(path: str, id: int | None):
    file = FileEvidence(f"/m/{path}", "server")
    assert resolve([file])[file.path].broker_id == id


@pytest.mark.parametrize(
    ("known", "asked", "id"),
    [
        ({"kafka-0.log": 0}, "kafka-2.log", 2),
        ({"kafka-0.log": 1000}, "kafka-2.log", None),
        ({"kafka1.log": 1, "kafka2.log": 1002}, "kafka3.log", None),
        ({"kfk01.log": 1, "kfk02.log": 2}, "kfk03.log", 3),
        ({"kfk01.log": 1}, "kfk03.log", None),
        ({"kfk01.log": 1, "kfk02.log": 5}, "kfk03.log", None),
        ({"a/dn151.log": 151, "a/dn152.log": 152}, "b/dn153.log", 153),
        ({"x.log#kafka-pool-a-0": 0, "x.log#kafka-pool-a-1": 1}, "x.log#kafka-pool-a-2", 2),
    ],
)
def test_an_id_by_other_names_of_the_shape(known: dict[str, int], asked: str, id: int | None):
    told = [FileEvidence(f"/m/{path}", "server", broker, "content") for path, broker in known.items()]
    file = FileEvidence(f"/m/{asked}", "controller")
    assert resolve([*told, file])[file.path].broker_id == id


def test_hosts_of_lines_are_names():
    told = [
        FileEvidence(f"/m/{broker}.log", "server", broker, "content", hosts=(f"prod-kafka-{broker}.example.com",))
        for broker in (1, 2)
    ]
    file = FileEvidence("/m/c.log", "server", hosts=("prod-kafka-3.example.com",))
    assert resolve([*told, file])[file.path].broker_id == 3


def test_a_broker_that_writes_elsewhere_meanwhile_is_not_that_of_a_name():
    second_us = 1_000_000
    told = FileEvidence("/m/server.log", "server", 2, "content", first_us=0, last_us=100 * second_us)
    for first_us, expected in ((50 * second_us, None), (100 * second_us, 2)):
        file = FileEvidence("/n/kafka2.txt", "server", first_us=first_us, last_us=first_us + 100 * second_us)
        assert resolve([told, file])[file.path].broker_id == expected


def object_of(name: str, broker: int | None = None, hour: int = 15) -> FileEvidence:
    source = None if broker is None else "content"
    return FileEvidence(
        f"/logs/2026-11-20-{hour}/{name}", "server", broker, source, "c" if broker is not None else None
    )


def test_an_objects_name_tells_the_broker_where_no_line_does():
    told = [object_of(f"Broker-{broker}_15-5{broker}_{broker}a.log.gz", broker) for broker in (1, 2, 3)]
    asked = [object_of(f"Broker-{broker}_16-00_{broker}b.log.gz", hour=16) for broker in (1, 2)]
    found = resolve([*told, *asked])
    assert [(found[file.path].broker_id, found[file.path].broker_id_source) for file in asked] == [
        (1, "name"),
        (2, "name"),
    ]
    assert {found[file.path].cluster_id for file in asked} == {"c"}


def test_an_object_of_another_broker_does_not_belong_to_the_only_one_that_its_folder_tells():
    told, asked = object_of("Broker-1_15-00_aa.log.gz", 1), object_of("Broker-2_15-00_bb.log.gz")
    assert resolve([told, asked])[asked.path].broker_id == 2


def test_brokers_have_the_ids_that_their_pods_names_were_seen_to_have():
    told = [FileEvidence(f"/l/kafka-{pod}/server.log", "server", 100 + pod, "content") for pod in (0, 1)]
    elsewhere = FileEvidence("/m/kafka-0/kafka-request.log", "kafka-request")
    another = FileEvidence("/m/kafka-2/kafka-request.log", "kafka-request")
    found = resolve([*told, elsewhere, another])
    assert (found[elsewhere.path].broker_id, found[another.path].broker_id) == (100, None)


def test_a_pods_number_alone_is_no_broker():
    pod = FileEvidence("/m/kafka-2/kafka-request.log", "kafka-request")
    assert resolve([pod])[pod.path].broker_id is None
    told = FileEvidence("/m/kafka-1/server.log", "server", 1, "content")
    assert resolve([told, pod])[pod.path].broker_id == 2


def test_a_client_in_a_brokers_folder_is_no_broker():
    hints = Hints()
    hints.kinds["client"] = 3
    client = evidence("/l/broker-1/connect.log", "other", hints, 0)
    assert resolve([client])[client.path].broker_id is None


NAMES = st.builds(BrokerName, st.sampled_from(("broker-", "kafka-", "kafka_")), st.integers(0, 3))


@given(st.lists(st.tuples(NAMES, st.integers(0, 3)), max_size=8), st.lists(NAMES, max_size=4))
def test_no_name_gets_a_broker_that_other_files_contradict(told: list[tuple[BrokerName, int]], asked: list[BrokerName]):
    for name, broker in brokers_of_names(told, asked).items():
        assert all(other == broker for named, other in told if named == name)
        if name not in dict(told):
            assert broker == name.number
            assert all(other == named.number for named, other in told if named.shape == name.shape)
