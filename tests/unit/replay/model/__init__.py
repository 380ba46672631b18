"""One broker as it is, exact and without intervals: what the kernel is held against, and the conformance tables ask."""
