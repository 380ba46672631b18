"""Replay: Kafka's delayed-operation rules over what leaders logged."""
