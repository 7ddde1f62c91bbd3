#!/usr/bin/env bash
# Make the weights of pretrained/empathetic and pretrained/empathetic_zh: about a day of one core.
#
#   EMPATHETIC_TRAIN=empatheticdialogues.tar.gz:train EMPATHETIC_DEV=empatheticdialogues.tar.gz:valid \
#   EN_CONVERSATIONS=… EDOS=… ZH_CONVERSATIONS=… ZH_LABELLED=… ZH_DEV=… bash tools/weights/empathetic/make.sh [RUNS]
#
# RUNS is the folder of the runs; OPTIONS are further arguments of each training; RATED has talks_en.jsonl.xz and talks_zh.jsonl.xz.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
runs=${1:-runs/weights/empathetic}
rated=${RATED:-$here/conversations}
export PYTHONPATH=$root${PYTHONPATH:+:$PYTHONPATH} EMPATHETIC_TRAIN EMPATHETIC_DEV EMPATHETIC_MORE=$runs/everyday.jsonl.xz

train() { # RECIPE NAME [arguments]
    local recipe=$1 name=$2
    shift 2
    # shellcheck disable=SC2086 # OPTIONS are several arguments
    python "$root/tools/train.py" -c "$recipe" -o "output_dir=$runs/$name" "$@" ${OPTIONS:-}
}

finish() { # LANGUAGE RECIPE RUN
    python "$here/judge_fitting.py" -c "$root/configs/$2.yaml" --weights "$runs/$3/best" \
        --ratings "$rated/talks_$1.jsonl.xz" --output "$runs/judged_$1" -o replies.judge=false
    python "$root/tools/export.py" --weights "$runs/judged_$1" --output "$runs/bundles/$2" --about "$root/configs/cards/$2.md" --eight-bits
}

mkdir -p "$runs"
python "$here/prepare.py" everyday "$EN_CONVERSATIONS" "$EMPATHETIC_MORE"
python "$here/prepare.py" mixture "$EDOS" "$runs/mixture.jsonl.xz" --beside "$EMPATHETIC_TRAIN"
python "$here/prepare.py" mixed "$EMPATHETIC_TRAIN" "$runs/mixed.jsonl.xz" # small talk three times, 5 % changed subjects
train "$here/pretrained.yaml" first
train "$here/pretrained.yaml" second -o seed=5 -o "data.train=$runs/mixture.jsonl.xz" -o "training.start_from=$runs/first/best" -o model.dropout=0.05 \
    -o training.optimizer=muon -o training.learning_rate=1.2e-3 -o training.warmup_steps=150 -o training.final_rate=0.03 -o training.max_steps=5200
train "$here/tuned.yaml" tuned -o "data.train=$runs/mixed.jsonl.xz" -o "training.start_from=$runs/second/best"
finish en empathetic tuned

python "$here/prepare.py" shortened "$ZH_CONVERSATIONS" "$runs/conversations_zh.jsonl" # replies of some 40 characters
python "$here/prepare.py" labelled "$ZH_LABELLED" "$runs/emotions_zh.jsonl"
chinese=(-o "data.more=$runs/conversations_zh.jsonl" -o "data.train=$runs/emotions_zh.jsonl" -o "data.dev=$ZH_DEV")
train "$root/configs/empathetic_zh.yaml" zh_first "${chinese[@]}" -o training.max_steps=2200
train "$root/configs/empathetic_zh.yaml" zh_second "${chinese[@]}" -o "training.start_from=$runs/zh_first/best" -o seed=5 -o training.max_steps=1500 \
    -o training.learning_rate=1.5e-3 -o training.warmup_steps=100
finish zh empathetic_zh zh_second
