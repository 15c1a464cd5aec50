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
    say="in Verilator"
    after="to replay in Icarus too (a minute or two): $1 table --rtl icarus"
elif found iverilog vvp; then
    name=icarus
    say="in Icarus (a minute or two)"
    after="Verilator, which takes seconds, is not installed and was skipped"
else
    echo "demo: no iverilog and no verilator is installed, the replay on the RTL is skipped" >&2
    exit 0
fi
echo
echo "demo: the seven recorded runs (-O0), each program replayed on the RTL $say" >&2
"$1" table --rtl "$name"
echo "demo: $after" >&2
