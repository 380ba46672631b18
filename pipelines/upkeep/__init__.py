"""A lake as years go: compaction, expiry of old days, upgrades to the tables of this version.

Begin to read with `maintenance`.
"""
