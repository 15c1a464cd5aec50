#!/bin/sh
# Makes .venv with the package and its tools, at the versions of constraints.txt.
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

# Debian ships the venv module's pip in a package of its own.
if ! "$python" -c 'import ensurepip' 2>/dev/null; then
    sudo=""
    [ "$(id -u)" = 0 ] || sudo=sudo
    $sudo apt-get -qq update && $sudo apt-get -qq install -y python3-venv >/dev/null
fi

echo "setup: making .venv ..." >&2
rm -rf .venv
"$python" -m venv .venv
.venv/bin/pip install -qq --disable-pip-version-check -c constraints.txt -e '.[dev]'
touch .venv/.complete
