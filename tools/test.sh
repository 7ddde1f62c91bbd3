#!/usr/bin/env bash
# Everything CI checks; further arguments go to pytest, e.g. `bash tools/test.sh -k couplet -x`.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
bash "$root/tools/setup_env.sh" --dev
cd "$root"

# Two workers share the cores; threads inside each would only get in each other's way.
export OMP_NUM_THREADS=1
bin=.venv/bin
"$bin/ruff" check --quiet
"$bin/ruff" format --check
"$bin/mypy" --no-error-summary
status=0
"$bin/pytest" -n "${TEST_WORKERS:-2}" "$@" || status=$?
if [[ $# == 0 ]]; then # those of pre-trained models, in their own environment, whatever the others said
    if "$bin/python" -c 'import sys; sys.exit(sys.version_info >= (3, 13))'; then
        bash tools/setup_env.sh --pretrained
        .venv-pretrained/bin/python -m pytest -n "${TEST_WORKERS:-2}" --dist loadfile tests/pretrained || status=$?
    else
        echo "tests of pre-trained models skipped: they need Python 3.10 to 3.12" >&2
    fi
fi
exit "$status"
