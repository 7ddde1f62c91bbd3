#!/usr/bin/env bash
# Set up what answering needs, then answer some 上联 and a turn of dialogue from the weights that ship.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
bash "$root/tools/setup_env.sh" --light
cd "$root"

python=.venv/bin/python
"$python" tools/predict.py -c configs/couplet.yaml \
    晚风摇树树还挺 春风送暖百花开 一帆风顺年年好 奇山奇水奇茶，奇人奇遇 诗成花已落
exec "$python" tools/predict.py -c configs/empathetic.yaml \
    "I lost my dog yesterday." "I finally passed the exam I had failed twice!"
