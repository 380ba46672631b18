"""What a line of a log says, by the class that wrote it. Pure.

Imports `base` and `kafka`. Begin to read with `grammar`; `facts` is what a worker does with lines.
"""
