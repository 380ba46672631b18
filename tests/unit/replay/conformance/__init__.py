"""What Kafka's own unit tests demand, in our words, of the model in `pipelines.replay.purgatory`."""
