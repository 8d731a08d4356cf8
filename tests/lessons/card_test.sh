#!/usr/bin/env bash
# The card: its layout, its numbers, what it refuses. Usage: card_test.sh CARD_PROGRAM SOURCE_DIR
set -uo pipefail
lesson=$1 source=$2
source "$source/tests/lessons/check.sh"

"$lesson" >out.txt 2>err.txt && [[ ! -s err.txt ]] && ok || bad 'the card' "$(cat err.txt)"
narrow 'the card'
for part in PROBLEM EQUATION 'SCORING FUNCTIONS' SOFTMAX CONTEXT 'WHAT ATTENTION IMPROVES' MASKS; do
    grep -q "^$part  " out.txt && ok || bad "no part $part"
done
if grep -qE 'nan|inf|–  |…  +[0-9]' out.txt; then bad 'a number that is none, or is cut' "$(grep -E 'nan|inf|–  ' out.txt)"; else ok; fi

# shows LABEL VALUE: this is what was measured in the line that begins with the label (theory stands behind two spaces).
shows() {
    local line
    line=$(grep -m 1 -F -- "  $1 " out.txt)
    line=${line#"  $1"}
    line=${line#"${line%%[! ]*}"}
    [[ ${line%%  *} == "$2" ]] && ok || bad "$1: '${line%%  *}' is not $2"
}
# between LABEL LOW HIGH: the first number behind the label.
between() {
    local x
    x=$(sed -n "s/^  $1 *[×≥]* *\([-0-9.e]*\) .*/\1/p" out.txt | head -n 1)
    awk -v x="$x" -v low="$2" -v high="$3" 'BEGIN { exit !(x != "" && x + 0 >= low && x + 0 <= high) }' && ok || bad "$1: '$x' is not from $2 to $3"
}
known() {  # what theory gives, whatever the seed
    shows '1000 factors, all below 1, multiplied' '0.5005'
    shows '… cell of an LSTM, weights 0, bias b_f = 1' '× 0.731'
    shows 'Of 40 inputs, 8 linear units keep' '8'
    shows '… of two equal scores' '0.500'
    shows 'Weight 0.8 on a value of 0 adds to c' '0'
    shows 'Gradient'\''s share at 1 of 50 equal weights' '0.0200'
    shows 'No mask, 3 words and 9 pads: words keep' '0.25'
    shows 'Masked: weight, gradient of the score' '0, 0'
    shows '10 words, 4 numbers each: free directions' 5
    shows '… left out, as here: Σ|α| + Σ|gradient|' 0
    between '… masked' 0 1e-12
    shows 'A row of −∞ alone: NaNs, of 3 weights' '3'
    shows 'Causal: pairs of 6 words seen, from later' '21, 0'
    shows 'FLOPs, self-attention over RNN: T = 64' '× 3.00'
    shows '… T = 256' '× 6.00'
    between 'Variance of q · k, d = 64' 54 74
    between 'Softmax.s slope .*: dot' 0.03 0.09
    between '… scaled' 0.8 0.93
    between 'A weight is exactly 0 from this gap on' 708 746
    between '‖∂α\/∂s‖, the largest of 100' 0.2 0.5
    between 'Gradient kept a step back: tanh RNN' 0.3 0.9
    between 'scores\[mask\] = -1e9: left on the pad' 1e-6 0.9
    between '27 pads, no mask: the output moves by' 1 1000
}
known
grep -qE '^  additive .* 8256 +384 ' out.txt && ok || bad 'the price of the additive score' "$(grep additive out.txt)"
cp out.txt one.txt
"$lesson" --seed 7 >out.txt 2>&1 && ok || bad 'seed 7' "$(tail -n 3 out.txt)"
narrow 'seed 7'
known
if cmp -s <(grep 'tanh RNN' one.txt) <(grep 'tanh RNN' out.txt); then bad 'two seeds, one measurement'; else ok; fi

"$lesson" --help >out.txt 2>&1 && grep -q -- --seed out.txt && ok || bad '--help' "$(cat out.txt)"
declines 'an unknown flag' --nonsense
declines 'a seed that is no number' --seed seven
finish
