"""Data directories: checkpoint files, log segments and the metadata log of a broker, as further witnesses. Pure.

Imports the rooms up to `lake`. Begin to read with `discover` and `segments`.
"""
