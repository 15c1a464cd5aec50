"""Executes programs, exact to the bit and to the cycle. Knows programs, never graphs."""
