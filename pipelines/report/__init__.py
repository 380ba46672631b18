"""Report: one model, rendered as JSON, Markdown, SARIF, a page and a console summary.

Imports the rooms up to `incidents`. Begin to read with `model` and `collect`.
"""
