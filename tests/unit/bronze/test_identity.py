"""Who wrote a file, from its own lines and from its neighbours. Lines are real ones."""

from __future__ import annotations

from collections import Counter
from zoneinfo import ZoneInfo

import pytest

from highwater.pipelines.bronze.identity import Hints, decide, kind_of, kind_of_name
from highwater.pipelines.bronze.layouts.patterns import KAFKA, pattern_layout
from highwater.pipelines.bronze.neighbours import FileEvidence, evidence, resolve

PARSE = pattern_layout(KAFKA).parser(ZoneInfo("UTC"))
CLUSTER_A, CLUSTER_B = "W-CQybfSRP-OafW0EWRB0Q", "StFVvc9XQEetSc4jeax1NA"


def hints(*messages: str, level: str = "INFO") -> Hints:
    found = Hints()
    for message in messages:
        head = PARSE(f"[2026-11-20 15:33:23,394] {level} {message}".encode())
        assert head is not None
        found.observe(head)
    return found


@pytest.mark.parametrize(
    "message",
    [
        "[Broker id=1] Transitioning 2 partition(s) to local leaders. (state.change.logger)",
        "[ReplicaManager broker=1] Fetching log segment for partition orders-2 (kafka.server.ReplicaManager)",
        "[KafkaServer id=1] started (kafka.server.KafkaServer)",
        "[BrokerServer id=1] Transition from SHUTDOWN to STARTING (kafka.server.BrokerServer)",
        "[ControllerServer id=1] Starting controller (kafka.server.ControllerServer)",
        "[Partition orders-2 broker=1] Progress awaiting ISR acks for offset 40 (kafka.cluster.Partition)",
        "[Partition __consumer_offsets-2 broker=1] Shrinking ISR from 1,2 to 1 (kafka.cluster.Partition)",
        "[Controller id=1] Broker 2 has been elected as the controller (kafka.controller.KafkaController)",
        "[Controller id=1 epoch=2] Controller 1 epoch 2 failed to change state for t-1 (state.change.logger)",
        "[Controller id=1, targetBrokerId=2] Node 2 disconnected. (org.apache.kafka.clients.NetworkClient)",
        "[ControllerEventThread controllerId=1] Starting (kafka.controller.ControllerEventManager$X)",
        "[RaftManager id=1] Attempting durable transition to Unattached (org.apache.kafka.raft.QuorumState)",
        "[SocketServer listenerType=CONTROLLER, nodeId=1] Created data-plane acceptor (kafka.network.SocketServer)",
        "[ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Starting (kafka.server.ReplicaFetcherThread)",
        "[ReplicaFetcherManager on broker 1] Added fetcher to broker 2 (kafka.server.ReplicaFetcherManager)",
        "[Replica Manager on Broker 1]: Recording follower broker 2 log read results (kafka.server.ReplicaManager)",
        "[Kafka Server 1], started (kafka.server.KafkaServer)",
        "[Controller 1]: Controller starting up (kafka.controller.KafkaController)",
        "[GroupCoordinator 1]: Starting up. (kafka.coordinator.group.GroupCoordinator)",
        "Partition [ledger,0] on broker 1: Recorded replica 2 log end offset 74 (kafka.cluster.Partition)",
        "Broker 1 received LeaderAndIsr request PartitionState(leader=2) from controller 4 (state.change.logger)",
        "Controller 1 epoch 1 initiated state change for partition [ledger,1] (state.change.logger)",
        "KafkaConfig values: \n\tbroker.id = 1\n\tnode.id = 1\n (kafka.server.KafkaConfig)",
        "Registered broker 1 at path /brokers/ids/1 with addresses: PLAINTEXT://a:9092 (kafka.zk.KafkaZkClient)",
        "Creating /brokers/ids/1 (is it secure? false) (kafka.zk.KafkaZkClient)",
        "Stat of the created znode at /brokers/ids/1 is: 27,27,1585 (kafka.zk.KafkaZkClient)",
        "[ExpirationReaper-1-Produce]: Starting (kafka.server.DelayedOperationPurgatory$ExpiredOperationReaper)",
        "[broker-1-to-controller-send-thread]: Recorded new controller, from now on will use broker 3 (kafka.server.X)",
        "[broker-1-ThrottledChannelReaper-Fetch]: Starting (kafka.server.ClientQuotaManager$ThrottledChannelReaper)",
        "[kafka-1-raft-outbound-request-thread]: Starting (org.apache.kafka.raft.KafkaNetworkChannel$SendThread)",
        "[Controller-1-to-broker-2-send-thread]: Starting (kafka.controller.RequestSendThread)",
    ],
)
def test_own_id(message: str) -> None:
    assert set(hints(message).brokers) == {1}


@pytest.mark.parametrize(
    "message",
    [
        "Broker 2 failed (kafka.server.KafkaServer)",
        "[ReplicaFetcherThread-0-3], Starting  (kafka.server.ReplicaFetcherThread)",
        "[Consumer clientId=a, groupId=g3] Node 2 disconnected (org.apache.kafka.clients.NetworkClient)",
        "[kafka-log-cleaner-thread-0]: Starting (kafka.log.LogCleaner)",
        "[GroupMetadataManager] Loaded 3 (kafka.x)",
        "KafkaConfig values: \n\tbroker.id = -1\n (kafka.server.KafkaConfig)",
        "[ExpirationReaper-0-null]: Starting (org.apache.kafka.server.purgatory.DelayedOperationPurgatory$X)",
    ],
)
def test_gossip_is_no_identity(message: str) -> None:
    assert not hints(message).brokers


@pytest.mark.parametrize(
    ("line", "broker"),
    [
        # cp-kafka, apache/kafka, Bitnami, Strimzi, wurstmeister; `env`, `set -x`, docker inspect, compose, systemd
        ("KAFKA_BROKER_ID=1", 1),
        ("KAFKA_NODE_ID=3", 3),
        ("KAFKA_CFG_NODE_ID=0", 0),
        ("KAFKA_CFG_BROKER_ID=1001", 1001),
        ("STRIMZI_BROKER_ID=2", 2),
        ("STRIMZI_NODE_ID=12", 12),
        ("export KAFKA_BROKER_ID=5", 5),
        ('declare -x KAFKA_NODE_ID="4"', 4),
        ("+ export KAFKA_NODE_ID=7", 7),
        ("Environment=KAFKA_BROKER_ID=6", None),
        ('            "KAFKA_BROKER_ID=8",', 8),
        ("      KAFKA_NODE_ID: 9", 9),
        ("      KAFKA_BROKER_ID: '10'", 10),
        ("broker.id=1", 1),
        ("node.id=11", 11),
        ("+ exec kafka-server-start.sh server.properties --override broker.id=2 --override log.dirs=/d", 2),
        ("-Dbroker.id=3", None),
        ("broker.id=-1", None),
        ("broker.id=${KAFKA_BROKER_ID}", None),
        ("broker.id=3.example.com", None),
        ("# broker.id", None),
        ("reserved.broker.max.id=1000", None),
        ("MIN_BROKER_ID=100", None),
        ("broker.id.generation.enable=true", None),
        ("KAFKA_BROKER_ID_COMMAND=hostname", None),
    ],
)
def test_ids_of_start_scripts_and_environments(line: str, broker: int | None) -> None:
    found = Hints()
    found.observe_text(f"===> User\n{line}\n===> Launching".encode())
    assert decide(found.environment)[0] == broker


def test_records_come_before_the_environment() -> None:
    found = hints("[KafkaServer id=1] started (kafka.server.KafkaServer)")
    found.observe_text(b"KAFKA_BROKER_ID=2\n")
    assert evidence("server.log", "server", found, 0).broker == 1
    alone = Hints()
    alone.observe_text(b"KAFKA_BROKER_ID=2\n")
    known = evidence("server.log", "server", alone, 0)
    assert (known.broker, known.source) == (2, "environment")
    alone.observe_text(b"broker.id=3\n")
    assert evidence("server.log", "server", alone, 0).broker is None


@pytest.mark.parametrize(
    "message",
    [
        f"Cluster ID = {CLUSTER_A} (kafka.server.KafkaServer)",
        f"[QuorumController id=1] Creating new QuorumController with clusterId {CLUSTER_A}. (o.QuorumController)",
        f"[QuorumController id=1] Creating new QuorumController with clusterId {CLUSTER_A} (o.QuorumController)",
        f"[RaftManager id=1] Vote request VoteRequestData(clusterId='{CLUSTER_A}', voterId=1) (o.KafkaRaftClient)",
        f"[Producer clientId=p] Cluster ID: {CLUSTER_A} (org.apache.kafka.clients.Metadata)",
        f'Completed request:{{"request":{{"clusterId":"{CLUSTER_A}","x":1}}}} (kafka.request.logger)',
    ],
)
def test_cluster(message: str) -> None:
    assert set(hints(message).clusters) == {CLUSTER_A}


@pytest.mark.parametrize(
    "message",
    [
        "[GroupCoordinator 1]: Preparing to rebalance group {} with old generation 1 (kafka.G)",
        "[GroupCoordinator 1]: Member m in group g, client id {} has failed (kafka.G)",
        "[TransactionCoordinator id=1] Initialized transactionalId {} with producerId 1 (kafka.T)",
        "[SocketServer listenerType=BROKER, nodeId=1] Failed authentication of user {} (kafka.network.Selector)",
        "[ClientQuotaManager] Changing quota of clientId {} (kafka.server.ClientQuotaManager)",
        'Completed request:{{"requestHeader":{{"clientId":"{}"}}}} (kafka.request.logger)',
        "Completed request:RequestHeader(apiKey=FETCH, apiVersion=11, clientId={}, correlationId=5) -- {{}} from "
        "connection 1.2.3.4:9092-1.2.3.5:5000-1;totalTime:1.0 (kafka.request.logger)",
        "[GroupCoordinator 1]: Group {} is dead (kafka.G)",
        "Creating new {} (kafka.G)",
    ],
)
@pytest.mark.parametrize("value", ["Cluster ID = {}", "clusterId={}", "Cluster ID: {}", "clusterId '{}"])
def test_a_client_names_no_cluster(message: str, value: str) -> None:
    assert not hints(message.format(value.format(CLUSTER_A))).clusters
    own = f"Cluster ID = {CLUSTER_B} (kafka.server.KafkaServer)"
    assert set(hints(message.format(value.format(CLUSTER_A)), own).clusters) == {CLUSTER_B}


def test_no_cluster() -> None:
    assert not hints("clusterId=null, x (kafka.server.X)", 'x "clusterId":null (kafka.server.X)').clusters


def test_version_old_and_new() -> None:
    old = "Kafka version : 0.10.2.2 (org.apache.kafka.common.utils.AppInfoParser)"
    new = "Kafka version: 3.9.1 (org.apache.kafka.common.utils.AppInfoParser)"
    assert hints(old, new, new).versions == ["0.10.2.2", "3.9.1"]


def test_configuration_tells_listeners_and_mode() -> None:
    kraft = hints(
        "KafkaConfig values: \n\tadvertised.listeners = PLAINTEXT://10.0.0.1:9092,SSL://kafka-1.example.com:9093\n"
        "\tlisteners = PLAINTEXT://:9092,CONTROLLER://0.0.0.0:9094,SSL://[2001:db8::1]:9093\n\tnode.id = 3\n"
        "\tprocess.roles = [broker, controller]\n\tzookeeper.connect = \n (kafka.server.KafkaConfig)"
    )
    assert kraft.listeners == {"10.0.0.1:9092", "kafka-1.example.com:9093", "2001:db8::1:9093"}
    assert kraft.modes.most_common(1)[0][0] == "kraft"
    zookeeper = hints(
        "KafkaConfig values: \n\tbroker.id = 3\n\tlisteners = PLAINTEXT://127.0.0.1:19095\n\tprocess.roles = []\n"
        "\tzookeeper.connect = 127.0.0.1:12181\n (kafka.server.KafkaConfig)"
    )
    assert zookeeper.modes.most_common(1)[0][0] == "zookeeper"


def test_local_address_of_requests() -> None:
    found = hints(
        'Completed request:{"connection":"2001:db8:0:0:0:0:0:1:9093-10.0.0.7:59480-4"} (kafka.request.logger)',
        'Completed request:{"a":1,"connection":"127.0.0.1:19094-127.0.0.1:59480-4","totalTimeMs":0.8}'
        " (kafka.request.logger)",
        "Completed request:{api_key=6} -- {} from connection 127.0.0.1:19093-127.0.0.1:53670;totalTime:49"
        " (kafka.request.logger)",
    )
    assert set(found.locals) == {"2001:db8::1:9093", "127.0.0.1:19094", "127.0.0.1:19093"}


def test_votes() -> None:
    assert decide(Counter()) == (None, None)
    assert decide(Counter({1: 99, 2: 1})) == (1, None)
    broker, problem = decide(Counter({1: 50, 2: 50}))
    assert broker is None
    assert "brokers 1 and 2" in (problem or "")


@pytest.mark.parametrize(
    ("name", "kind", "prefix"),
    [
        ("server.log", "server", ""),
        ("server.log.2026-11-20-14", "server", ""),
        ("server-2026-11-20-1.log.gz", "server", ""),
        ("state-change.log.1.gz", "state-change", ""),
        ("kafka-request.log", "kafka-request", ""),
        ("broker1-kafka-request.log", "kafka-request", "broker1-"),
        ("broker1-server.log.1", "server", "broker1-"),
        ("kafka-server.log", "server", ""),
        ("log-cleaner.log", "log-cleaner", ""),
        ("kafkaServer.out", "server", ""),
        ("kafkaServer.log", "server", ""),
        ("notes.log", None, ""),
    ],
)
def test_kind_of_name(name: str, kind: str | None, prefix: str) -> None:
    assert kind_of_name(f"/logs/{name}") == (kind, prefix)


@pytest.mark.parametrize(
    ("name", "loggers", "kind"),
    [
        ("server.log", {"server": 90, "controller": 10}, "server"),
        ("server.log", {"kafka-request": 100}, "kafka-request"),
        ("kafka-1.log", {"state-change": 100}, "state-change"),
        ("console.log", {"server": 50, "kafka-request": 50}, "server"),
        ("controller.log", {"controller": 10, "server": 1}, "controller"),
        ("controller.log", {}, "controller"),
        ("app.log", {"other": 10}, "other"),
        ("app.log", {}, "other"),
        ("kafka-authorizer.log", {"server": 10}, "server"),
    ],
)
def test_kind_is_verified_by_content(name: str, loggers: dict[str, int], kind: str) -> None:
    assert kind_of(name, Counter(loggers)) == kind


def server(path: str, broker: int, cluster: str | None = CLUSTER_A, port: int | None = None, **more) -> FileEvidence:
    listeners = frozenset({f"127.0.0.1:{port or 19092 + broker}"})
    return FileEvidence(path, "server", broker, "content", cluster, "3.9.1", "kraft", listeners, **more)


def requests(path: str, port: int, cluster: str | None = None) -> FileEvidence:
    return FileEvidence(path, "kafka-request", cluster=cluster, locals=Counter({f"127.0.0.1:{port}": 9}))


def other(path: str) -> FileEvidence:
    return FileEvidence(path, "log-cleaner")


def told(*files: FileEvidence) -> dict[str, tuple[str, int | None, str | None]]:
    return {path: (found.cluster_id, found.broker_id, found.broker_id_source) for path, found in resolve(files).items()}


def test_request_log_by_listener_then_others_by_folder() -> None:
    found = resolve([server("/l/b1/server.log", 1), requests("/l/b1/kafka-request.log", 19093), other("/l/b1/c.log")])
    assert found["/l/b1/kafka-request.log"].broker_id_source == "listener"
    assert found["/l/b1/c.log"].broker_id_source == "folder"
    assert {(item.cluster_id, item.broker_id, item.kafka_version, item.mode) for item in found.values()} == {
        (CLUSTER_A, 1, "3.9.1", "kraft")
    }
    assert {item.problem for item in found.values()} == {None}


def test_flat_folder_of_several_brokers() -> None:
    found = told(
        server("/l/b1-server.log", 1),
        server("/l/b2-server.log", 2),
        requests("/l/b1-kafka-request.log", 19094),  # the address is evidence, the name is none
        requests("/l/requests.log", 19093),
        other("/l/b2-log-cleaner.log"),
        other("/l/log-cleaner.log"),
        other("/l/b3-log-cleaner.log"),
    )
    assert found["/l/b1-kafka-request.log"] == (CLUSTER_A, 2, "listener")
    assert found["/l/requests.log"] == (CLUSTER_A, 1, "listener")
    assert found["/l/b2-log-cleaner.log"] == (CLUSTER_A, 2, "folder")
    assert found["/l/log-cleaner.log"] == (CLUSTER_A, None, None)
    assert found["/l/b3-log-cleaner.log"] == (CLUSTER_A, None, None)


def test_clusters_on_the_same_addresses_are_told_apart_by_folder() -> None:
    found = told(
        server("/l/a/b1/server.log", 1, CLUSTER_A),
        server("/l/b/b1/server.log", 1, CLUSTER_B),
        requests("/l/a/b1/kafka-request.log", 19093),
        requests("/l/b/b1/kafka-request.log", 19093),
        requests("/l/kafka-request.log", 19093),
        requests("/l/elsewhere/kafka-request.log", 19093, CLUSTER_B),
    )
    assert found["/l/a/b1/kafka-request.log"] == (CLUSTER_A, 1, "listener")
    assert found["/l/b/b1/kafka-request.log"] == (CLUSTER_B, 1, "listener")
    assert found["/l/kafka-request.log"] == ("unknown", None, None)
    assert found["/l/elsewhere/kafka-request.log"] == (CLUSTER_B, 1, "listener")


def test_a_neighbour_folder_does_not_name_the_broker() -> None:
    requests_2 = requests("/l/b2/kafka-request.log", 19094)
    found = resolve([server("/l/b1/server.log", 1), requests_2, other("/l/b1/old/x.log")])
    assert found["/l/b2/kafka-request.log"].broker_id is None
    assert "server.log into the same folder" in (found["/l/b2/kafka-request.log"].problem or "")
    assert found["/l/b1/old/x.log"].broker_id == 1


def test_a_file_without_cluster_belongs_to_the_nearest_one() -> None:
    silent = server("/l/a/b2/server.log", 2, None), server("/l/c/server.log", 3, None)
    found = told(server("/l/a/b1/server.log", 1), *silent)
    assert found["/l/a/b2/server.log"] == (CLUSTER_A, 2, "content")
    assert found["/l/c/server.log"] == (CLUSTER_A, 3, "content")


def test_unknown_cluster_among_several_is_said() -> None:
    files = [server("/l/a/s.log", 1), server("/l/b/s.log", 1, CLUSTER_B), server("/l/c/s.log", 1, None)]
    identity = resolve(files)["/l/c/s.log"]
    assert identity.cluster_id == "unknown"
    assert "cluster" in (identity.problem or "")


def test_version_before_an_upgrade() -> None:
    old = server("/l/server.log.1", 1, first_us=10)
    new = FileEvidence("/l/server.log", "server", 1, "content", CLUSTER_A, "4.0.0", "kraft", first_us=20)
    between = FileEvidence("/l/state-change.log.1", "state-change", 1, "content", first_us=15)
    after = FileEvidence("/l/state-change.log", "state-change", 1, "content", first_us=25)
    found = resolve([old, new, between, after])
    assert found["/l/state-change.log.1"].kafka_version == "3.9.1"
    assert found["/l/state-change.log"].kafka_version == "4.0.0"


CONNECT = "Kafka Connect worker initializing ... (org.apache.kafka.connect.cli.AbstractConnectCli:114)"
REST = "Server started, listening for requests... (io.confluent.kafkarest.KafkaRestMain)"
PRODUCER = "[Producer clientId=producer-1] Cluster ID: 2qm8FOvwQQiavfUpxdjAWA (org.apache.kafka.clients.Metadata:349)"
STARTED = "[KafkaServer id=1] started (kafka.server.KafkaServer)"
STARTED_KRAFT = "[KafkaRaftServer nodeId=1] Kafka Server started (kafka.server.KafkaRaftServer)"


def version(text: str) -> str:
    return f"Kafka version: {text} (org.apache.kafka.common.utils.AppInfoParser)"


@pytest.mark.parametrize("messages", [(CONNECT, version("3.7.1"), PRODUCER), (version("7.3.1-ccs"), REST)])
@pytest.mark.parametrize("path", ["/a/host1/connect.log", "/a/host1/kafka-rest.log", "/a/host1/server.log"])
def test_a_clients_file_tells_nothing_of_the_broker_in_whose_folder_it_lies(path: str, messages: tuple[str, ...]):
    found = hints(*messages)
    assert found.is_clients
    client = evidence(path, kind_of(path, found.kinds), found, 0)
    broker = server("/a/host1/logs-server.log", 1)
    identities = resolve([client, broker])
    assert (identities[path].broker_id, identities[path].kafka_version) == (None, None)
    assert identities[broker.path].kafka_version == "3.9.1"


@pytest.mark.parametrize(
    "message",
    [
        "[SocketServer listenerType=BROKER, nodeId=1] Failed authentication (org.apache.kafka.common.network.Selector)",
        "Rolled new log segment at offset 2000 in 3 ms. (kafka.log.Log)",
        "Cluster ID = W-CQybfSRP-OafW0EWRB0Q (kafka.server.KafkaServer)",
    ],
)
def test_clients_within_a_broker_do_not_make_its_file_a_clients(message: str):
    assert not hints(version("3.7.1"), PRODUCER, message).is_clients


def test_a_file_that_only_names_a_version_is_of_no_client():
    found = hints(version("3.7.1"))
    assert not found.is_clients
    assert (kind_of("/a/server.log", found.kinds), found.version) == ("server", "3.7.1")


@pytest.mark.parametrize("started", [STARTED, STARTED_KRAFT, "[Kafka Server 1], started (kafka.server.KafkaServer)"])
def test_the_version_is_the_one_that_a_start_follows(started: str):
    assert hints(version("6.1.2-ce"), PRODUCER, version("2.8.1"), started, version("6.1.2-ce")).version == "2.8.1"


def test_where_a_client_writes_too_a_version_without_a_start_is_nobodys():
    assert (
        hints(version("3.7.1"), PRODUCER, "Rolled new log segment at offset 3 in 3 ms. (kafka.log.Log)").version is None
    )


def test_a_start_long_after_a_version_is_not_its_own():
    found = Hints()
    for second, message in ((0, version("3.7.1")), (1, PRODUCER), (9, STARTED)):
        head = PARSE(f"[2026-11-20 15:33:{second:02},394] INFO {message}".encode())
        assert head is not None
        found.observe(head)
    assert found.version is None
