"""What happened: logs in tables of edges, arms and events, and the original files of known data sets."""
