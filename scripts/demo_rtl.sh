#!/bin/sh
# The end of `make demo`: the seven runs of the table again, each program replayed on the chip's RTL
# in the simulators that are installed. Usage: demo_rtl.sh CAPRA
set -eu
names=""
! command -v verilator >/dev/null || ! command -v g++ >/dev/null || names=verilator
! command -v iverilog >/dev/null || names="${names:+$names,}icarus"
if [ -z "$names" ]; then
    echo "demo: no iverilog and no verilator is installed, the replay on the RTL is skipped" >&2
    exit 0
fi
echo
echo "demo: the seven runs of the table, replayed on the RTL ($names; a minute or two) ..." >&2
"$1" table --rtl "$names"
