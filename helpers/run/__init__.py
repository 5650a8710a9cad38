"""Executing, reporting, timing, training."""
