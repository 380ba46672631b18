"""What can be done to a cluster, by name."""
