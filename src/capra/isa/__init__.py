"""The GA2 instruction set: table, encoding, text, timing, programs. Knows no graphs."""
