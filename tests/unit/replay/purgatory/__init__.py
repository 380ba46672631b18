"""What a broker that logs every check of its delayed produces (T3) must have logged. Pure."""
