"""Silver: the stage that stores what grammars read of records, a table per kind of fact.

Imports the rooms up to `bronze`. Begin to read with `parse`, which is all there is.
"""
