"""Contexts against peers, by the supervised protocol: `make bench-context` writes the tables of docs/context.md."""
