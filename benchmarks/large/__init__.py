"""`sparse` on large graphs: `make bench-scale` runs the cases, keeps docs/scale.json and writes docs/scale.md."""
