"""Users of a cluster with SASL/PLAIN and ACLs: settings of its nodes and of its clients. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from tests.testbed.settings import CONTROLLER_LISTENER, LISTENER

#: Brokers and tools; clients that may do what they do; one that may only look at topics; one with a wrong password.
ADMIN, APP, GUEST, STRANGER = "admin", "app", "guest", "stranger"
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def password_of(user: str) -> str:
    """Everybody's but the stranger's, whom no broker knows."""
    return f"{user}-secret"


def node_settings() -> dict[str, object]:
    """Settings of all nodes: brokers speak SASL, controllers among themselves do not."""
    users = " ".join(f'user_{user}="{password_of(user)}"' for user in (ADMIN, APP, GUEST))
    login = f'{_LOGIN} required username="{ADMIN}" password="{password_of(ADMIN)}" {users};'
    return {
        "listener.security.protocol.map": f"{LISTENER}:SASL_PLAINTEXT,{CONTROLLER_LISTENER}:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        f"listener.name.{LISTENER.lower()}.plain.sasl.jaas.config": login,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{ADMIN};User:ANONYMOUS",
    }


def client_settings(user: str) -> dict[str, str]:
    """Settings of a client in Python."""
    login = {"sasl.username": user, "sasl.password": password_of(user)}
    return {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanisms": "PLAIN"} | login


def tool_settings() -> Mapping[str, str]:
    """Settings of Kafka's own tools."""
    login = f'{_LOGIN} required username="{ADMIN}" password="{password_of(ADMIN)}";'
    return {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": login}
