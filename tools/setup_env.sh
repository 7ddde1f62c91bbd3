#!/usr/bin/env bash
# Make .venv in this checkout with the locked requirements; does nothing when it is up to date.
#
#   bash tools/setup_env.sh --light      what answering needs: seconds, 0.1 GB
#   bash tools/setup_env.sh --serve      and the server; without Paddle
#   bash tools/setup_env.sh              everything: training, evaluating, the server; minutes, 1.7 GB
#   bash tools/setup_env.sh --dev        and what tools/test.sh needs
#   bash tools/setup_env.sh --pretrained for pre-trained models (docs/pretrained.md), in .venv-pretrained; 2.1 GB
#   PYTHON=/path/to/python3.11 bash tools/setup_env.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
    echo "setup_env: $1" >&2
    exit 2
}

supported() {
    "$1" -c "import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, $newest))" 2>/dev/null
}

has_venv() {
    "$1" -c 'import venv, ensurepip' 2>/dev/null
}

fail_without_venv() {
    fail "$1 lacks the venv module; on Debian or Ubuntu install the package python3-venv."
}

find_python() {
    local candidate without_venv=
    for candidate in python3.11 python3.12 python3.10 python3.13 python3.14 python3 python; do
        supported "$candidate" || continue
        if has_venv "$candidate"; then
            command -v "$candidate"
            return
        fi
        without_venv=$candidate
    done
    [[ -z $without_venv ]] || fail_without_venv "$without_venv"
    fail "no Python 3.10 to 3.$newest found; install one or set PYTHON=/path/to/it."
}

venv=.venv
lock=requirements.lock
newest=14
# Each of these contains those before it.
files=(requirements-light.txt requirements-serve.txt requirements.txt requirements-dev.txt)
case "${1:-}" in
    --light) requirements=requirements-light.txt ;;
    --serve) requirements=requirements-serve.txt ;;
    "") requirements=requirements.txt ;;
    --dev) requirements=requirements-dev.txt ;;
    --pretrained)
        venv=.venv-pretrained
        requirements=requirements-pretrained.txt
        lock=requirements-pretrained.lock
        newest=12
        files=("$requirements")
        ;;
    *) fail "unknown argument '$1'; there are --light, --serve, --dev and --pretrained." ;;
esac

# The stamp is written last, so an environment without one was left unfinished. It holds the requirements file, then
# the place and Python (a venv cannot be moved), then the checksums.
stamp=$venv/setup_env.stamp
sums="$(cksum "${files[@]}" "$lock" pyproject.toml)"
place=
# A damaged environment is made anew: one whose Python does not start, or that lost its packages.
if [[ -f $stamp ]] && "$venv/bin/python" -c 'import pip, numpy, yaml' 2>/dev/null; then
    { read -r installed; read -r place; installed_sums="$(cat)"; } <"$stamp"
    # What is there already stays: the larger of both is installed.
    [[ "${files[*]}" == *"$requirements"*"$installed"* ]] && requirements=$installed
    if [[ -z ${PYTHON:-} ]]; then
        [[ $place == "$PWD "* ]] || place=
    else
        [[ $place == "$PWD $PYTHON" ]] || place=
    fi
    if [[ -n $place && $installed == "$requirements" && $installed_sums == "$sums" ]]; then
        exit 0
    fi
fi

if [[ -z $place ]]; then
    if [[ -n ${PYTHON:-} ]]; then
        supported "$PYTHON" || fail "PYTHON=$PYTHON is not a Python 3.10 to 3.$newest."
        has_venv "$PYTHON" || fail_without_venv "$PYTHON"
        python=$PYTHON
    else
        python=$(find_python)
    fi
    rm -rf "$venv"
    "$python" -m venv "$venv"
    # An older pip cannot install this checkout in place.
    "$venv/bin/python" -c 'import pip, sys; sys.exit(tuple(map(int, pip.__version__.split(".")[:2])) < (21, 3))' ||
        "$venv/bin/python" -m pip install --quiet --upgrade 'pip>=21.3,<26' ||
        fail "pip could not be updated, see its message above; mend that and run this script again."
    place="$PWD $python"
fi

time=minutes
options=()
if [[ $requirements =~ light|serve ]]; then
    time=seconds
fi
if [[ $requirements =~ light|serve|pretrained ]]; then
    options=(--no-compile) # Python compiles what it imports, which is little; all of it takes as long as the rest
fi
echo "setup_env: installing $requirements into $venv, $($venv/bin/python --version); $time when it is new …" >&2
# Without PIP_USE_PEP517 the pip of Python 3.10 builds old source packages in a way that no longer works.
export PIP_USE_PEP517=1
pip=("$venv/bin/python" -m pip install --quiet --quiet --disable-pip-version-check "${options[@]}")
sections="$(awk -v own="# $requirements" '/^# requirements/ && past { exit } $0 == own { past = 1 } 1' "$lock")"
# This checkout is no file with a hash, so it comes second; the lock has all that it needs.
"${pip[@]}" --require-hashes -r <(printf '%s\n' "$sections") && "${pip[@]}" --no-deps --no-build-isolation -e . ||
    fail "pip could not install $requirements, see its message above; mend that, or delete $venv, and run this again."
if [[ ! $requirements =~ light|serve ]]; then
    case $("$venv/bin/python" --version) in
        *" 3.13."*) echo "setup_env: there is no PaddleNLP for Python 3.13; only its couplet corpus needs it." >&2 ;;
        *" 3.14."*) echo "setup_env: there is no PaddlePaddle for Python 3.14: it answers and serves, and does not train." >&2 ;;
    esac
fi
printf '%s\n' "$requirements" "$place" "$sums" >"$stamp"
