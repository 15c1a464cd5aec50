"""The static certificate: every program of a model computes the rows of its plain steps."""
