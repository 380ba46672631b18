"""Kafka's error codes, as far as the model answers with them (``org.apache.kafka.common.protocol.Errors``)."""

from __future__ import annotations

from enum import IntEnum


class Error(IntEnum):
    """An error code of the protocol."""

    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    UNKNOWN_TOPIC_OR_PARTITION = 3
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    INVALID_UPDATE_VERSION = 95
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108


class KafkaError(Exception):
    """An operation on a partition failed with an error code."""

    def __init__(self, error: Error) -> None:
        super().__init__(error.name)
        self.error = error
