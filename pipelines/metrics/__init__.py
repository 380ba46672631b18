"""Kafka's own metrics, rebuilt from logs: what a broker would have exposed through JMX.

Imports the rooms up to `report`. Begin to read with `stage`.
"""
