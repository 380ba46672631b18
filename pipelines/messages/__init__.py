"""The meaning of what Kafka logs at WARN and above: one entry per text, as data, and the search for it. Pure.

- `atlas`: the entries, and the search for the entry of a line;
- `wording`: a text with placeholders, matched in linear time;
- `exceptions`: the exception classes and native errors that appear in stack traces;
- `lines`: a line of any layout as level, logger and message.

Begin to read with `atlas`.
"""
