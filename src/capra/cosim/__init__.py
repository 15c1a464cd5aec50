"""The chip's RTL in Icarus Verilog and Verilator: build, run programs, compare with the simulator.

Knows programs and the machine that executes them, never graphs or models.
"""
