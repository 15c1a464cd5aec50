"""Sweeps: a grid of runs, executed in parallel, one row of a database each."""
