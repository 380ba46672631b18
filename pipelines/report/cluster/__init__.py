"""What happened to the cluster: brokers, elections, ISRs, windows, restarts, settings, stories of requests. Pure."""
