"""Table declarations: what every Delta table holds, stated once.

No Spark session and no I/O here. From one `TableSpec` come the table's DDL, its Arrow schema, its
documentation and its contract test.
"""
