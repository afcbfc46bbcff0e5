"""Studies on logs: what a log's world is, how it is played and stored, and what the report says of it.

Order of reading: `settings` and `sources` (what is played), `trial` (how), `parts` (what is kept), `outcome` (what is
read back), `numbers`, `words`, `figures` and `page` (what is said of it).
"""
