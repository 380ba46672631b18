"""Thin entry points: from arguments to configuration to a step to an exit code."""
