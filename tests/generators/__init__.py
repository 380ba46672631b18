"""Random inputs, each from a seed."""
