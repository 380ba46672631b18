"""Metadata of a cluster for all stages: versions, names, starts and stops, files and connections, read once.

Imports the rooms up to `quality`. Begin to read with `premises`.
"""
