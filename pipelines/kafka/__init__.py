"""What is true of Kafka whoever asks: releases and their rules, settings as time goes, seals of brokers. Pure.

Imports `base` only. Begin to read with `versions` and `context`.
"""
