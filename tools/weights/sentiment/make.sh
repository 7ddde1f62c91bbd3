#!/usr/bin/env bash
# Make the weights of pretrained/sentiment_zh and pretrained/sentiment_en: half an hour of one core.
#
#   ZH_TRAIN=… ZH_DEV=… EN_TRAIN=… EN_DEV=… GOEMOTIONS=goemotions.tsv bash tools/weights/sentiment/make.sh [RUNS]
#
# RUNS is the folder of the runs; OPTIONS are further arguments of each training.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
root=$here/../../..
runs=${1:-runs/weights/sentiment}

make_weights() { # NAME TRAIN DEV [arguments]
    local name=$1 train=$2 dev=$3
    shift 3
    # shellcheck disable=SC2086 # OPTIONS are several arguments
    python "$root/tools/train.py" -c "$root/configs/$name.yaml" -o "output_dir=$runs/$name" -o "data.train=$train" -o "data.dev=$dev" \
        "$@" ${OPTIONS:-}
    python "$root/tools/export.py" --weights "$runs/$name/best" --output "$runs/bundles/$name" \
        --about "$root/configs/cards/$name.md" --eight-bits
}

mkdir -p "$runs"
python "$here/goemotions.py" "$GOEMOTIONS" >"$runs/goemotions.tsv"
make_weights sentiment_zh "$ZH_TRAIN" "$ZH_DEV"
make_weights sentiment_en "$EN_TRAIN" "$EN_DEV" -o "data.more=$runs/goemotions.tsv"
