"""Answers to what operators ask next: of one request, write, partition or finding, of survivors, of two intervals.

Pure modules turn rows into an `Answer`; each has a reader beside it, which asks a `LakeReader` for these rows and no
others. Imports the rooms up to `metrics`. Begin to read with `answer`.
"""
