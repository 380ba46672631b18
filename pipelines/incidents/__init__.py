"""What happened, in words: episodes that a person on call asks for, ranked by harm, each with its cause.

`incidents_of` (`pipelines.incidents.story`) is the one thing to call: facts in, incidents out, all of it pure. Begin to
read with `pipelines.incidents.incident`, then with any module of `pipelines.incidents.kinds`. Imports the rooms up to
`controllers`.
"""
