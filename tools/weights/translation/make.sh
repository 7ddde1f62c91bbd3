#!/usr/bin/env bash
# Make the weights of pretrained/translation: about four hours of one core.
#
#   TRANSLATION_TRAIN=pairs.tsv TRANSLATION_DEV=dev.tsv bash tools/weights/translation/make.sh [RUNS]
#
# RUNS is the folder of the runs; OPTIONS are further arguments of each training.
set -euo pipefail
root=$(dirname "${BASH_SOURCE[0]}")/../../..
runs=${1:-runs/weights/translation}
export TRANSLATION_TRAIN TRANSLATION_DEV

train() { # NAME [arguments]
    local name=$1
    shift
    # shellcheck disable=SC2086 # OPTIONS are several arguments
    python "$root/tools/train.py" -c "$root/configs/translation.yaml" -o "output_dir=$runs/$name" "$@" ${OPTIONS:-}
}

smaller=(-o model.encoder_layers=3 -o model.decoder_layers=2)
muon=(-o training.optimizer=muon -o training.warmup_steps=150 -o training.final_rate=0.02)
train first "${smaller[@]}" -o training.max_steps=2400
train more "${smaller[@]}" "${muon[@]}" -o seed=22 -o "training.start_from=$runs/first/best" -o training.max_steps=1700
train grown "${muon[@]}" -o seed=32 -o "training.start_from=$runs/more/best" -o training.epochs=20 -o training.max_steps=4600
python "$root/tools/export.py" --weights "$runs/grown/best" --output "$runs/bundle" --about "$root/configs/cards/translation.md" --eight-bits
