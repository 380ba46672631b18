"""Wrappers that containers, shippers, consoles and people put around each line of a log, removed line by line.

- `lines`: wrappers of a line of text, a table;
- `fields`: objects and rows that hold a line in one of their fields;
- `pieces`: splits a file into units to unwrap: lines, rows with line ends in them, objects of one document;
- `recognise`: the wrappers of a file, up to three deep, and the layout within;
- `remarks`: lines of other programs.

A wrapper is not a layout. The layout of the wrapped text is inferred separately, so any layout can be in any wrapper.
Times are those that Kafka wrote. The layout of a wrapped file is named after both, the outermost wrapper first:
``cri/[%d] %p %m (%c)``.
"""
