"""Experiments, the planner and sweeps: what runs are worth, as records."""
