#!/usr/bin/env bash
# Make the weights of pretrained/couplet: about ten hours of one core.
#
#   COUPLET_TRAIN=couplets.tsv COUPLET_DEV=dev.tsv COUPLET_VERSE=verse.tsv bash tools/weights/couplet/make.sh [RUNS]
#
# RUNS is the folder of the runs; OPTIONS are further arguments of each training.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
runs=${1:-runs/weights/couplet}
export PYTHONPATH=$root${PYTHONPATH:+:$PYTHONPATH} COUPLET_TRAIN COUPLET_DEV COUPLET_VERSE COUPLET_RATINGS=${COUPLET_RATINGS:-$here/ratings.jsonl.xz}

train() { # RECIPE NAME [START] [arguments]: from the run or bundle START, or from nothing where it is -
    local recipe=$1 name=$2 start=${3:--}
    shift "$(($# < 3 ? 2 : 3))"
    [[ $start == - ]] || set -- "$@" -o "training.start_from=$runs/$start"
    # shellcheck disable=SC2086 # OPTIONS are several arguments
    python "$root/tools/train.py" -c "$here/$recipe.yaml" -o "output_dir=$runs/$name" "$@" ${OPTIONS:-}
}

average() { # FIRST SECOND SHARE OUTPUT
    python "$here/../average.py" "$runs/$1" "$runs/$2" --share "$3" --output "$runs/$4"
}

train first first
train continued second first/best
train continued third second/best -o seed=3 -o training.max_steps=2300
train uses fourth third/best -o data.reverse=0.3 -o data.compose=0.25
shares=(-o data.reverse=0.25 -o data.compose=0.2)
train uses fifth fourth/best -o seed=5 "${shares[@]}" -o training.learning_rate=8e-4 -o training.max_steps=2200
train uses sixth fifth/best -o seed=6 "${shares[@]}" -o training.learning_rate=4.5e-4 -o training.warmup_steps=40 -o training.max_steps=600
average fifth/best sixth/best 0.35 mean_of_six
train uses seventh mean_of_six -o seed=8 "${shares[@]}" -o training.learning_rate=8e-4 -o training.max_steps=2200
average seventh/best mean_of_six 0.5 mean_of_seven
train rated rated mean_of_seven
average rated/last mean_of_seven 0.15 mean_of_rated
python "$here/judge_fitting.py" -c "$root/configs/couplet.yaml" --weights "$runs/mean_of_rated" --ratings "$COUPLET_RATINGS" --output "$runs/judged"
python "$root/tools/export.py" --weights "$runs/judged" --output "$runs/bundle" --about "$root/configs/cards/couplet.md" \
    --data "$COUPLET_TRAIN" --eight-bits
