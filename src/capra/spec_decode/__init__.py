"""The speculative loop. Sees a target and a proposer, never a device."""
