"""What the whole audit rests on: versions, names, lives, files and connections of a cluster, asked once.

Imports the rooms up to `quality`. Begin to read with `premises`.
"""
