"""The plain format: a folder with tables of edges, arms and events.

Order of reading: `cells` (columns), `folder` (which tables, and mistakes in their rows), `context_columns` and
`slate_columns` of events, `events_table`, `reading` (all tables, a log), `write_log`.
"""
