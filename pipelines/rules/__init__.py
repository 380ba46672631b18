"""The rules of correctness: which guarantee was broken, where, and the lines that prove it."""
