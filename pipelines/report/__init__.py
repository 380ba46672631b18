"""Report: one model, rendered as JSON, Markdown and a console summary."""
