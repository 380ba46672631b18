"""One module per guarantee, or per few that look at the same lines: the rules themselves."""
