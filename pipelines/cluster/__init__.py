"""Metadata of a cluster that all stages share: versions, names, lives, files and connections, read once.

Imports the rooms up to `quality`. Begin to read with `premises`.
"""
