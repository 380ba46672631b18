"""Layouts of log lines: a layout is a log4j conversion pattern, inferred from the lines of a file (`infer`).

- `times`: how a time is spelled, as a pattern of Java's SimpleDateFormat;
- `patterns`: a conversion pattern becomes the start and the parser of a file's records;
- `structured`: the same of JSON objects and of rows of CSV;
- `loggers`: whose a line is where the full name of its logger does not stand in it;
- `infer`: the pattern that the lines of a file were written by, proven by Kafka's own texts.
"""
