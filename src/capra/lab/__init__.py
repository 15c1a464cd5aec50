"""Experiments over executed runs."""
