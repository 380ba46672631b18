"""Topics that Kafka names itself."""

from __future__ import annotations

from typing import Final

#: The metadata log of a KRaft cluster: its fetches are Raft's business; no leader of it is replayed.
METADATA_TOPIC: Final = "__cluster_metadata"
#: ``Uuid.METADATA_TOPIC_ID``.
METADATA_TOPIC_ID: Final = "AAAAAAAAAAAAAAAAAAAAAQ"
#: Of the group coordinator.
GROUP_TOPIC: Final = "__consumer_offsets"
#: Of the transaction coordinator.
TRANSACTION_TOPIC: Final = "__transaction_state"
SHARE_TOPIC: Final = "__share_group_state"
