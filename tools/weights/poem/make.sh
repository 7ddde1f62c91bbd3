#!/usr/bin/env bash
# Make the weights of pretrained/poem: about four hours of one core.
#
#   POEM_TRAIN=poems.txt.xz POEM_DEV=dev.txt POEM_PAIRS=pairs.tsv.xz bash tools/weights/poem/make.sh [RUNS]
#
# RUNS is the folder of the runs; OPTIONS are further arguments of each training.
set -euo pipefail
root=$(dirname "${BASH_SOURCE[0]}")/../../..
runs=${1:-runs/weights/poem}
export POEM_DEV

train() { # NAME DATA [arguments]
    local name=$1 data=$2
    shift 2
    # shellcheck disable=SC2086 # OPTIONS are several arguments
    python "$root/tools/train.py" -c "$root/configs/poem.yaml" -o "output_dir=$runs/$name" -o "data.train=$data" "$@" ${OPTIONS:-}
}

mix() { # COPIES: shuffles so many copies of the poems with the pairs, each a poem of one couplet under the title 联
    {
        for _ in $(seq "$1"); do xz -dcf "$POEM_TRAIN"; done
        xz -dcf "$POEM_PAIRS" | awk -F '\t' '{ print "联\t" $1 "，" $2 "。" }'
    } | shuf --random-source=<(yes)
}

mkdir -p "$runs"
mix 1 >"$runs/once.txt"
mix 2 >"$runs/twice.txt"
train first "$POEM_TRAIN" -o model.num_layers=4 -o training.max_steps=2000
train more "$runs/once.txt" -o model.num_layers=4 -o seed=21 -o "training.start_from=$runs/first/best" -o training.optimizer=muon \
    -o training.warmup_steps=100 -o training.max_steps=1700
train grown "$runs/twice.txt" -o seed=31 -o "training.start_from=$runs/more/best" -o training.optimizer=muon \
    -o training.warmup_steps=150 -o training.epochs=20 -o training.max_steps=4400
python "$root/tools/export.py" --weights "$runs/grown/best" --output "$runs/bundle" --about "$root/configs/cards/poem.md" --eight-bits
