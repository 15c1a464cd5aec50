"""From a graph to a program. Knows the ISA and its timing, never a simulator."""
