"""Layouts of log lines: a layout is a log4j conversion pattern, inferred from the lines of a file (`infer`).

- `times`: the format of a time, as a pattern of Java's SimpleDateFormat;
- `patterns`: a conversion pattern becomes the start and the parser of a file's records;
- `structured`: the same for JSON objects and for rows of CSV;
- `loggers`: resolves the logger of a line that does not contain its full name;
- `infer`: the pattern that the lines of a file were written by, proven by Kafka's own texts.
"""
