"""The rules of correctness: which guarantee was broken, where, and the lines that prove it.

Imports the rooms up to `timing`. Begin to read with `rule`, then with a module of `guarantees`.
"""
