"""Tests in three rings: unit (no JVM), spark (one session), e2e (the command in a process of its own)."""
