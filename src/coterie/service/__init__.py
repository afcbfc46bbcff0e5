"""Decisions over HTTP: a journal that loses nothing, an engine that is one writer, an app of thin routes."""
