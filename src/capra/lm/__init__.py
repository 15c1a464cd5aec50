"""Language models and the programs that they are run with. Knows no speculation."""
