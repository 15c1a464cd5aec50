"""The passes, in the order in which the pipeline runs them."""
