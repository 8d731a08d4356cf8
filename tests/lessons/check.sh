# shellcheck shell=bash
# shellcheck disable=SC2154,SC2015  # who sources this sets them; ok and bad never fail
# What the tests of lessons share; to be sourced. $lesson is the program, $source the project's folder.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
unset COLUMNS
failed=0 passed=0

ok() { passed=$((passed + 1)); }
bad() { printf 'FAILED: %s\n' "$1"; shift; printf '    %s\n' "$@" | head -n 20; failed=$((failed + 1)); }
finish() { printf '%d passed, %d failed\n' "$passed" "$failed"; ((failed == 0)); }

# narrow WHAT: nothing in out.txt is wider than 80 columns.
narrow() {
    local wide
    wide=$(python3 -c '
import sys, unicodedata
def width(s): return sum(0 if unicodedata.combining(c) or unicodedata.category(c) in ("Mn","Me","Cf") else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in s)
print(max((width(l.rstrip("\n")) for l in open("out.txt", encoding="utf-8")), default=0))')
    ((wide <= 80)) || { bad "$1: $wide columns" "$(awk 'length($0) > 80' out.txt)"; return 1; }
}

# well_formed WHAT: out.txt holds a table of checks, no escape character, nothing wider than 80 columns.
well_formed() {
    grep -q '^Checks' out.txt || { bad "$1: no checks" "$(tail -n 15 out.txt)"; return 1; }
    ! grep -q $'\x1b' out.txt || { bad "$1: an escape character"; return 1; }
    narrow "$1"
}

# works WHAT ARGUMENT…: exit 0, every check holds, well formed, nothing on standard error.
works() {
    local what=$1; shift
    if ! "$lesson" --quick "$@" >out.txt 2>err.txt; then bad "$what" "$(cat err.txt)" "$(tail -n 15 out.txt)"; return; fi
    if grep -q FAILS out.txt; then bad "$what: checks" "$(tail -n 15 out.txt)"; return; fi
    [[ -s err.txt ]] && { bad "$what: on standard error" "$(cat err.txt)"; return; }
    if well_formed "$what"; then ok; fi
}

# refuses WHAT WORDS ARGUMENT…: exit 2 and one line on standard error that holds the words.
refuses() {
    local what=$1 words=$2 code=0; shift 2
    "$lesson" --quick "$@" >out.txt 2>err.txt || code=$?
    if [[ $code == 2 && $(wc -l <err.txt) == 1 ]] && grep -qF -- "$words" err.txt; then ok; else bad "$what (exit $code)" "$(cat err.txt)"; fi
}

# declines WHAT ARGUMENT…: the same of a program that is no lesson, whatever the words.
declines() {
    local what=$1 code=0; shift
    "$lesson" "$@" >out.txt 2>err.txt </dev/null || code=$?
    if [[ $code == 2 && $(wc -l <err.txt) == 1 ]]; then ok; else bad "$what (exit $code)" "$(cat err.txt)"; fi
}

# titled NUMBER: what `lessons/run list` shows, the first line of the source, is the title that out.txt begins with.
titled() {
    local listed
    listed=$(sed -n '1s|^// *||p' "$source"/lessons/"$1"_*.cpp)
    if [[ $(head -n 1 out.txt) == "$1  $listed" ]]; then ok; else bad 'the title' "$(head -n 1 out.txt)" "is listed as: $listed"; fi
}

# as_expected NUMBER: words and layout are as committed (lessons/run NN --quick >tests/lessons/expected/NN.txt renews
# them). Numbers have the checks' own tolerances, and their last digits differ with BLAS's kernel.
shape() { sed -E 's/-?[0-9]+(\.[0-9]+)?(e[-+][0-9]+)?/#/g; s/ +#/ #/g' "$1"; }
as_expected() {
    local difference
    "$lesson" --quick >out.txt 2>err.txt
    titled "$1"
    if difference=$(diff <(shape "$source/tests/lessons/expected/$1.txt") <(shape out.txt)); then ok; else bad 'the expected text' "$difference"; fi
}

# every_check_can_fail: where each measurement misses its theory, no check holds.
every_check_can_fail() {
    local code=0
    "$lesson" --quick --break measured >out.txt 2>err.txt || code=$?
    if [[ $code == 1 ]] && grep -q ' FAILS$' out.txt && ! grep -q ' holds$' out.txt; then ok; else bad 'a check that cannot fail' "$(grep ' holds$' out.txt)" "$(cat err.txt)"; fi
}

# traced: the schema holds, the same run gives the same bytes.
traced() {
    "$lesson" --quick --trace one.json >/dev/null && "$lesson" --quick --trace two.json >/dev/null
    if cmp -s one.json two.json; then ok; else bad 'two runs, two traces'; fi
    local python=/usr/bin/python3
    if /usr/bin/env python3 -c 'import jsonschema' 2>/dev/null; then python=python3; fi
    if "$python" -c '
import json, sys, jsonschema
jsonschema.validate(json.load(open("one.json")), json.load(open(sys.argv[1])))' "$source/engine/trace.schema.json" 2>err.txt
    then ok; else bad 'the schema' "$(tail -n 5 err.txt)"; fi
}

# every_check_has_failed NUMBER: each check of one.json has been seen to notice a fault in the lesson's code, one that
# faults.py found, or one of --break.
every_check_has_failed() {
    local id seen
    seen=$(sed 's/\t.*//' "$source/tests/lessons/faults.txt"; sed -n "s/^$1 break [^ ]* //p" "$source/tests/lessons/learners.txt")
    for id in $(python3 -c 'import json; print(*(c["id"] for c in json.load(open("one.json"))["checks"]))'); do
        if grep -qxF "$id" <(tr ' ' '\n' <<<"$seen"); then ok; else bad "no fault is known that $id notices (tests/lessons/faults.py --help)"; fi
    done
}
