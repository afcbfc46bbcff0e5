"""The service over HTTP: thin routes on the engine."""
