"""The plain format: a folder with tables of edges, arms and events.

Order of reading: `folder` (which tables), `cells` and `row_errors` (columns and mistakes in them), `users_table`,
`arms_table` and `events_table` (the tables one by one), `reading`, `write_log`.
"""
