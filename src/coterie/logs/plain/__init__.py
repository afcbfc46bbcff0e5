"""The plain format: a folder with tables of edges, arms and events.

Order of reading: `folder` (which tables), `cells` and `faults` (columns and mistakes in them), `people`, `choices` and
`happened` (the tables one by one), `reading`, `writing`.
"""
