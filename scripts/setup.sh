#!/bin/sh
# Makes .venv with the package and its tools, at the versions of constraints.txt, and installs the
# hardware tools where they are missing and this user may: Capra runs without them, apart from --rtl.
set -eu
cd "$(dirname "$0")/.."

python=$(command -v python3.11 || command -v python3) || {
    echo "setup: no python3 found, expected Python 3.11 or later" >&2
    exit 1
}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "setup: $("$python" --version) found, expected Python 3.11 or later" >&2
    exit 1
}

sudo=""
[ "$(id -u)" = 0 ] || sudo=sudo

install() {
    $sudo apt-get -qq update && DEBIAN_FRONTEND=noninteractive $sudo apt-get -qq install -y "$@"
}

# Debian ships the venv module's pip in a package of its own.
if ! "$python" -c 'import ensurepip' 2>/dev/null; then
    install python3-venv >/dev/null
fi

missing=""
for tool in iverilog verilator yosys g++ make; do
    command -v "$tool" >/dev/null || missing="$missing $tool"
done
# Verilator writes fst waveforms with zlib.
[ -e /usr/include/zlib.h ] || missing="$missing zlib1g-dev"
if [ -n "$missing" ]; then
    echo "setup: installing$missing ..." >&2
    [ -z "$sudo" ] || sudo="sudo -n" # these are worth no password prompt
    # shellcheck disable=SC2086  # a list of packages
    install $missing >/dev/null 2>&1 ||
        echo "setup: could not install$missing; --rtl and the RTL tests need them" >&2
fi

# Only the tests of the report's page need a browser; at home they skip without one.
if [ -n "${CI:-}" ] && ! command -v chromium-headless-shell >/dev/null; then
    echo "setup: installing chromium-headless-shell ..." >&2
    install --no-install-recommends chromium-headless-shell >/dev/null 2>&1 ||
        echo "setup: could not install chromium-headless-shell; the page's tests need it" >&2
fi

echo "setup: making .venv ..." >&2
rm -rf .venv
"$python" -m venv .venv
.venv/bin/pip install -qq --disable-pip-version-check -c constraints.txt -e '.[dev]'
touch .venv/.complete
