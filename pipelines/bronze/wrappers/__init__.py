"""What containers, shippers, consoles and people put around each line of a log, taken off line by line.

- `lines`: wrappers of a line of text, a table;
- `fields`: objects and rows that hold a line in one of their fields;
- `pieces`: how a file falls into what is unwrapped: lines, rows with line ends in them, objects of one document;
- `recognise`: the wrappers of a file, up to three deep, and the layout within;
- `remarks`: lines of other programs.

A wrapper is no layout: what it wraps is probed for one, so that any layout may stand in any wrapper, and times are
those that Kafka wrote. The layout of a wrapped file is named after both, the outermost wrapper first:
``cri/[%d] %p %m (%c)``.
"""
