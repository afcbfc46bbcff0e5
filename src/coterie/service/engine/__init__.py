"""Experiments that decide and learn under one writer; every change of state is an event of the journal."""
