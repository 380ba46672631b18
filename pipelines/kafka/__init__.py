"""Facts about Kafka itself: releases and their rules, settings over time, seals of brokers. Pure.

Imports `base` only. Begin to read with `versions` and `context`.
"""
