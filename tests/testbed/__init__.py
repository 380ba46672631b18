"""Real clusters of any Kafka release on loopback: made to fail, packed, audited, compared with what clients saw."""
