#!/usr/bin/env bash
# What the training program is asked and refuses; what it learns, tests/run --all sees. Usage: train_test.sh TRAIN_PROGRAM SOURCE_DIR
set -uo pipefail
lesson=$1 source=$2
source "$source/tests/lessons/check.sh"

declines 'nothing'
declines 'an unknown task' poems
declines 'an unknown flag' dates --nonsense
declines 'a seed that is no number' dates --seed seven
declines 'a flag without its value' dates --updates
"$lesson" --help >out.txt 2>&1 && grep -q -- --updates out.txt && ok || bad '--help' "$(cat out.txt)"
finish
