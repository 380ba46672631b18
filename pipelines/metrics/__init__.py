"""Kafka's own metrics, rebuilt from logs: what a broker would have exposed through JMX."""
