"""From silver and gold to the facts that rules read."""
