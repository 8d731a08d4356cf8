#!/usr/bin/env bash
# Every claim stands on checks that lessons make, and the page of claims is current.
# Usage: claims_test.sh CLAIMS_PROGRAM SOURCE_DIR LESSON_PROGRAM…
set -uo pipefail
lesson=$1 source=$2; shift 2
source "$source/tests/lessons/check.sh"

mkdir traces
for program; do
    if "$program" --quick --out traces >out.txt 2>&1; then ok; else bad "$program --quick" "$(tail -n 5 out.txt)"; fi
done
rows=$source/lessons/claims.tsv page=$source/lessons/claims.md

# current WHAT ARGUMENT…: exit 0, nothing on standard error.
current() {
    local what=$1; shift
    if "$lesson" --out traces "$@" >out.txt 2>err.txt && [[ ! -s err.txt ]]; then ok; else bad "$what" "$(cat err.txt)"; fi
}
# fails WHAT WORDS ARGUMENT…: exit 1, and a line on standard error holds the words.
fails() {
    local what=$1 words=$2 code=0; shift 2
    "$lesson" --out traces "$@" >out.txt 2>err.txt || code=$?
    if [[ $code == 1 ]] && grep -qF -- "$words" err.txt; then ok; else bad "$what (exit $code)" "$(cat err.txt)"; fi
}
# planted WHAT WORDS PROGRAM: fails on the rows as this awk program changes them.
planted() {
    awk -F'\t' -v OFS='\t' "$3" "$rows" >rows.tsv
    fails "$1" "$2" --check --rows rows.tsv
}

current 'claims.md is current' --check
current 'a page of these traces' --page page.md
current 'that page is current, too' --page page.md --check
for n in $(seq -f 'S%02g' 77); do
    [[ $(grep -c "^| $n | " "$page") == 1 ]] || bad "claims.md has not one row for $n"
done
if python3 -c '
import sys
rows = [l for l in open(sys.argv[1], encoding="utf-8") if l.startswith("| S")]
sys.exit(any(l.replace("\\|", "").count("|") != 7 for l in rows))' "$page"; then ok; else bad 'a row of claims.md without six cells'; fi

planted 'a missing row' 'S40: there is no such row' '$1 != "S40"'
planted 'a doubled row' 'S40 (line' '{ print } $1 == "S40"'
planted 'a row too many' 'S78: is none of' '{ print } $1 == "S77" { $1 = "S78"; print }'
planted 'an unknown check' 'no lesson makes the check 07.nonsense' '$1 == "S12" { $4 = "07.sum 07.nonsense" } { print }'
planted 'a check of full runs without its mark' 'mark it with *' '{ sub(/\*/, "", $4); print }'
planted 'a mark on a check of quick runs' 'it needs no *' '$1 == "S12" { $4 = "07.sum*" } { print }'
planted 'a check for four rows' '07.sum: serves more than 3 rows' '$1 ~ /S1[2345]/ { $4 = "07.sum" } { print }'
planted 'a verdict that is none' 'is no verdict' '$1 == "S12" { $5 = "perhaps" } { print }'
planted 'a verdict without a check' 'a verdict without a check' '$1 == "S12" { $4 = "–" } { print }'
planted 'checks of what is not measurable' 'not measurable, and yet' '$1 == "S63" { $4 = "07.sum" } { print }'
planted 'another verdict than on the page' 'is not what lessons/run claims would write' '$1 == "S12" { $5 = "imprecise" } { print }'
planted 'another check than on the page' 'is not what lessons/run claims would write' '$1 == "S12" { $4 = "07.sum" } { print }'

sed 's/| S12 | /| S12 | x/' "$page" >stale.md
fails 'a page changed by hand' 'stale.md:' --check --page stale.md
head -n 40 "$page" >stale.md
fails 'a page that ends early' 'stale.md:41' --check --page stale.md
fails 'no page' 'missing.md:1' --check --page missing.md

# A verdict falls with its checks: 07.sum no longer holds.
python3 -c '
import json, sys
trace = json.load(open("traces/07_attention_by_hand.json"))
for check in trace["checks"]:
    if check["id"] == "07.sum": check["pass"] = False
json.dump(trace, open("traces/07_attention_by_hand.json", "w"))'
fails 'a check that fails' 'does not follow: 07.sum fails' --check
rm traces/07_attention_by_hand.json
fails 'a lesson without a trace' 'lesson 07: no trace of it' --check

code=0
"$lesson" --rows missing.tsv --out traces >out.txt 2>err.txt || code=$?
[[ $code == 2 && $(wc -l <err.txt) == 1 ]] && ok || bad "no rows (exit $code)" "$(cat err.txt)"
declines 'an unknown flag' --nonsense
"$lesson" --help >out.txt 2>&1 && grep -q -- --check out.txt && ok || bad '--help' "$(cat out.txt)"
finish
