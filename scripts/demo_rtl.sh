#!/bin/sh
# The end of `make demo`: the seven runs of the table again, each program replayed on the chip's RTL,
# in Verilator, or else in Icarus, which is thirty times slower. Usage: demo_rtl.sh CAPRA
set -eu

found() {
    for tool in "$@"; do
        command -v "$tool" >/dev/null || return 1
    done
}

if found verilator g++ make; then
    name=verilator
    say="in Verilator (seconds, after building it once); Icarus is skipped, it takes a minute or two:
demo: $1 table --rtl icarus"
elif found iverilog vvp; then
    name=icarus
    say="in Icarus (a minute or two); Verilator, which takes seconds, is not installed and skipped"
else
    echo "demo: no iverilog and no verilator is installed, the replay on the RTL is skipped" >&2
    exit 0
fi
echo
echo "demo: the seven runs of the table, replayed on the RTL $say" >&2
"$1" table --rtl "$name"
