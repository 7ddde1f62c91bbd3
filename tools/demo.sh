#!/usr/bin/env bash
# Train a small couplet model on the couplets that ship with the project, then print 下联 for some 上联.
# The finished run is kept in runs/couplet_sample; delete that folder to train again.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
bash "$root/tools/setup_env.sh"
cd "$root"

python=.venv/bin/python
config=configs/couplet_sample.yaml
if [[ ! -d runs/couplet_sample/best ]]; then
    "$python" tools/train.py -c "$config"
fi
# The first two are among the couplets that were learnt, the others are new to the model.
exec "$python" tools/predict.py -c "$config" 旧约梅花证 鞭炮震开新岁月 春风送暖百花开 一帆风顺年年好 明月松间照 晚风摇树树还挺
