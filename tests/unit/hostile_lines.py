"""Lines that no broker logs, though each has the form of one: foreign ids, contradictory starts, odd numbers."""

from __future__ import annotations

from hypothesis import strategies as st

#: Numbers at and beyond the bounds of the fields of a line. int() refuses the last one.
NUMBERS = ("0", "-1", "77", "2147483647", "2147483648", "-2147483649", str(1 << 63), "9" * 40, "9" * 5_000)
_TIMES = (
    "2026-11-20 15:33:21,175",
    "2026-11-20 15:34:19,000",
    "2026-11-20 03:00:00,000",
    "1970-01-01 00:00:00,000",
    "9999-12-31 23:59:59,999",
)
#: Level, message and logger; ``{}`` is a number, or nothing.
_FORMS = (
    ("INFO", "[KafkaServer id={}] starting", "kafka.server.KafkaServer"),
    ("INFO", "[KafkaServer id={}] started", "kafka.server.KafkaServer"),
    ("INFO", "[KafkaServer id={}] shutting down", "kafka.server.KafkaServer"),
    ("INFO", "[KafkaServer id={}] shut down completed", "kafka.server.KafkaServer"),
    ("ERROR", "[KafkaServer id={}] Fatal error during KafkaServer startup", "kafka.server.KafkaServer"),
    ("INFO", "[KafkaRaftServer nodeId={}] Kafka Server started", "kafka.server.KafkaRaftServer"),
    ("INFO", "[BrokerServer id={}] Transition from STARTING to STARTED", "kafka.server.BrokerServer"),
    ("INFO", "[SocketServer listenerType=BROKER, nodeId={}] Stopping socket server", "kafka.network.SocketServer"),
    (
        "INFO",
        "KafkaConfig values: \n\tbroker.id = {}\n\tnode.id = {}\n\tprocess.roles = []",
        "kafka.server.KafkaConfig",
    ),
    ("INFO", "Registered broker {} at path /brokers/ids/{} with addresses: ", "kafka.zk.KafkaZkClient"),
    ("INFO", "[Controller id={} epoch={}] Broker failure callback for {}", "kafka.controller.KafkaController"),
    (
        "INFO",
        "[Controller id={}] Newly added brokers: {}, deleted brokers: {}, bounced brokers: {}, all live brokers: {}",
        "kafka.controller.KafkaController",
    ),
    ("INFO", "[QuorumController id={}] Fencing broker {} at epoch {}", "org.apache.kafka.controller.QuorumController"),
    (
        "INFO",
        "[Partition orders-0 broker={}] Shrinking ISR from 1,{},3 to {}. Leader: (highWatermark: {}, endOffset: {}). "
        "Out of sync replicas: (brokerId: {}, endOffset: {}).",
        "kafka.cluster.Partition",
    ),
    ("INFO", "[Partition orders-{} broker=2] ISR updated to {} and version updated to {}", "kafka.cluster.Partition"),
    (
        "INFO",
        "[Broker id={}] Leader orders-0 starts at leader epoch {} from offset {} with high watermark {} ISR [{}] "
        "addingReplicas [] removingReplicas []. Previous leader epoch was {}.",
        "state.change.logger",
    ),
    (
        "INFO",
        "[ReplicaFetcher replicaId={}, leaderId={}, fetcherId=0] Truncating partition orders-0 to offset {}",
        "kafka.server.ReplicaFetcherThread",
    ),
)
_CLUSTERS = ("A" * 22, "-" * 22, "", "B" * 21)
#: JSON and text of completed requests.
_REQUESTS = (
    'Completed request:{{"isForwarded":false,"requestHeader":{{"requestApiKey":0,"requestApiVersion":{},'
    '"correlationId":{},"clientId":"","requestApiKeyName":"PRODUCE"}},"request":{{"acks":{},"timeoutMs":{}}},'
    '"response":{{"responses":[]}},"connection":"127.0.0.1:9092-127.0.0.1:5000-1","totalTimeMs":{}}}',
    "Completed request:RequestHeader(apiKey=PRODUCE, apiVersion={}, clientId=, correlationId={}) -- {{acks={}}} from "
    "connection 127.0.0.1:9092-127.0.0.1:5000-1;totalTime:{}",
)


@st.composite
def hostile_lines(draw: st.DrawFn) -> str:
    """Draw a line with a time of its own."""
    level, text, logger = draw(
        st.one_of(
            st.sampled_from(_FORMS),
            st.sampled_from(_CLUSTERS).map(lambda name: ("INFO", f"Cluster ID = {name}", "kafka.server.KafkaServer")),
            st.sampled_from(_REQUESTS).map(lambda text: ("DEBUG", text, "kafka.request.logger")),
        )
    )
    holes = text.count("{}")
    values = draw(st.lists(st.sampled_from((*NUMBERS, "")), min_size=holes, max_size=holes))
    return f"[{draw(st.sampled_from(_TIMES))}] {level} {text.format(*values)} ({logger})"
