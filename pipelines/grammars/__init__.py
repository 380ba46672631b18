"""Meaning of a log line, by the class that wrote it. Pure.

Imports `base` and `kafka`. Begin to read with `grammar`; `facts` applies the grammars to lines in a worker.
"""
