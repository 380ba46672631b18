"""Quality of what was read: expectations of every table, checked per batch; what was read wrongly is quarantined."""
