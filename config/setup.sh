#!/bin/sh
# Puts what Handrail needs into .venv, from nothing but Python 3.11 or newer. Usage: sh config/setup.sh demo|test
# uv does the work. One that is there is used; else it is fetched into .tools with pip. Each problem ends in one line that says what to do.
set -u
cd "$(dirname "$0")/.." || exit 1
what=${1:-demo}
tools=$PWD/.tools
log=$tools/setup.log
UV_VERSION='uv>=0.9,<1'

say() { printf '%s\n' "$*"; }
fail() { printf 'Handrail: %s\n' "$*" >&2; exit 1; }

find_python() {
    seen=
    for name in python3 python3.14 python3.13 python3.12 python3.11; do
        version=$("$name" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            python=$("$name" -c 'import sys; print(sys.executable)')
            return
        fi
        seen="$seen $name is $version;"
    done
    [ -n "$seen" ] && fail "Python 3.11 or newer is needed, but$seen install a newer python3 and try again."
    fail "python3 is not installed. On Debian: apt-get install python3 python3-venv"
}

# Commands run quietly into the log: their last words are shown only when they fail.
quietly() { "$@" >>"$log" 2>&1; }

why_it_failed() {
    if grep -qiE 'no space left' "$log"; then say "the disk is full"
    elif grep -qiE 'read-only file system|permission denied' "$log"; then say "a directory cannot be written: $(grep -iE 'read-only file system|permission denied' "$log" | tail -n 1)"
    elif grep -qiE 'name resolution|dns error|failed to lookup|getaddrinfo|name or service not known|connection refused|network is unreachable|timed out|failed to fetch|connect error|no matching distribution|failed to establish|request failed|error sending request' "$log"; then
        say "the package index cannot be reached. Is there a network, or a proxy to set?"
    else say "$(grep -vE '^[[:space:]]*$' "$log" | tail -n 1)"
    fi
}

find_uv() {
    if uv --version >/dev/null 2>&1; then uv=uv; return; fi
    uv=$tools/uv/bin/uv
    "$uv" --version >/dev/null 2>&1 && return
    say "==> Fetching uv, the installer (once, into .tools)"
    rm -rf "$tools/uv"
    if "$python" -c 'import venv, ensurepip' 2>/dev/null || get_venv; then
        quietly "$python" -m venv "$tools/uv" || fail "no virtual environment could be made: $(why_it_failed) (all of it: .tools/setup.log)"
        quietly "$tools/uv/bin/python" -m pip install --disable-pip-version-check "$UV_VERSION" && return
    elif "$python" -m pip --version >/dev/null 2>&1; then
        quietly "$python" -m pip install --disable-pip-version-check --target "$tools/uv" "$UV_VERSION" && return
    else
        version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        fail "this Python has neither venv nor pip. On Debian: apt-get install python3-venv (or python$version-venv)"
    fi
    fail "uv could not be fetched: $(why_it_failed) (all of it: .tools/setup.log)"
}

# Debian packs venv apart from python3. Root may install it; everybody else is told.
get_venv() {
    [ "$(id -u)" = 0 ] && [ "$python" = /usr/bin/python3 ] && command -v apt-get >/dev/null 2>&1 || return 1
    say "==> Installing Debian's python3-venv"
    quietly apt-get update && DEBIAN_FRONTEND=noninteractive quietly apt-get install -y --no-install-recommends python3-venv || return 1
    "$python" -c 'import venv, ensurepip' 2>/dev/null
}

sync_packages() {
    set -- sync --frozen --python "$python" --no-python-downloads
    # the demo leaves alone what tests have installed, and does not fetch it either
    [ "$what" = demo ] && set -- "$@" --no-dev --inexact
    [ -x .venv/bin/python ] || say "==> Installing Python packages into .venv (the first time: a minute or so)"
    quietly "$uv" "$@" || fail "the Python packages could not be installed: $(why_it_failed) (all of it: .tools/setup.log)"
}

mkdir -p "$tools" 2>/dev/null && : >"$log" 2>/dev/null || fail "$PWD cannot be written, and .venv goes there. Copy the project to a directory of yours."
# uv keeps downloads in the home directory; a user without one gets a place here
cache=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}
[ -n "${UV_CACHE_DIR:-}" ] || mkdir -p "$cache/uv" 2>/dev/null && [ -w "$cache/uv" ] || export UV_CACHE_DIR="$tools/cache"
unset VIRTUAL_ENV UV_PROJECT_ENVIRONMENT
find_python
find_uv
sync_packages
