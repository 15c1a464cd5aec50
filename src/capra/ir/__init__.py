"""The graph IR and its two evaluations. Knows no instructions, no addresses and no models."""
