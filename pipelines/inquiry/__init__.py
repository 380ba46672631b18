"""Answers to operators' questions about a request, a write, a partition, a finding, survivors, or two intervals.

Pure modules turn rows into an `Answer`; a reader in the same module asks a `LakeReader` for exactly these rows. Imports
the rooms up to `metrics`. Begin to read with `answer`.
"""
