#!/usr/bin/env bash
# The quiz as learners meet it. Usage: quiz_test.sh QUIZ_PROGRAM SOURCE_DIR
set -uo pipefail
lesson=$1 source=$2
source "$source/tests/lessons/check.sh"

# says WHAT WORDS…: the last output holds each of them.
says() {
    local what=$1 words; shift
    tr -s ' \n' ' ' <out.txt >flat.txt  # wherever lines are broken
    for words in "$@"; do grep -qF -- "$words" flat.txt && ok || bad "$what: not a word of '$words'" "$(tail -n 12 out.txt)"; done
}
# quiz WHAT ARGUMENT…: exit 0, nothing on standard error, at most 80 columns.
quiz() {
    local what=$1; shift
    "$lesson" "$@" >out.txt 2>err.txt && [[ ! -s err.txt ]] && ok || bad "$what" "$(cat err.txt)" "$(tail -n 5 out.txt)"
    narrow "$what"
}

right='1e-11 b 5 1/64 c 8256 b b 64 c 25% b 0 c c 21'
quiz 'all right' --answers "$right"
says 'all right' '16 of 16 right.' 'Question 1' 'Question 2' 'Question 3'
[[ $(grep -c '^A model answer, with its evidence' out.txt) == 3 && $(grep -c '^What the course text overstates' out.txt) == 3 ]] && ok || bad 'a model answer for each'
cp out.txt all.txt
tr ' ' '\n' <<<"$right" >answers.txt
quiz 'from a file' <answers.txt
if diff <(grep -E '^>|right' all.txt) <(grep -E '^>|right' out.txt) >difference.txt; then ok; else bad 'a pipe and --answers differ' "$(cat difference.txt)"; fi
factor=$("$lesson" --seed 3 --answers '' | tr '\n' ' ' | sed 's/.* by \([0-9.]*\) on average.*/\1/')
quiz 'another seed' --seed 3 --answers "$factor^49 ${right#* }"
says 'another seed' '16 of 16 right.'
quiz 'lines that end as in Windows' < <(sed 's/$/\r/' answers.txt)
says 'lines that end as in Windows' '16 of 16 right.'

quiz 'all wrong' --answers '0.5 a 7 0.5 a 64 a a 8 a 0.5 a 0.1 b a 15'
says 'all wrong' '0 of 16 right.' 'Not so. The answer is b.' 'Measured:'
quiz 'nothing known' --answers '? ? ? ? ? ? ? ? ? ? ? ? ? ? ? ?'
says 'nothing known' '0 of 16 right.' 'Not answered. The answer is'

# Each answer by itself: right, and a near miss.
# part QUESTION PLACE RIGHT WRONG
part() {
    local before='' i
    for ((i = 1; i < $2; i++)); do before+='? '; done
    "$lesson" --question "$1" --answers "$before$3" >out.txt 2>&1
    [[ $(grep -c '^Right\.' out.txt) == 1 ]] && ok || bad "question $1, part $2: $3 is right" "$(tail -n 6 out.txt)"
    "$lesson" --question "$1" --answers "$before$4" >out.txt 2>&1
    [[ $(grep -c '^Right\.' out.txt) == 0 && $(grep -c '^Not so\.' out.txt) == 1 ]] && ok || bad "question $1, part $2: $4 is wrong" "$(tail -n 6 out.txt)"
}
part 1 1 10^-11 1e-9
part 1 2 B c
part 1 3 5 12
part 1 4 0.0156 0.02
part 1 5 c b
part 2 1 8256 8192
part 2 2 b c
part 2 3 b a
part 2 4 64 8
part 2 5 c b
part 3 1 '0.25' 0.3
part 3 2 b a
part 3 3 0 1e-9
part 3 4 c b
part 3 5 c b
part 3 6 21 15

# What can't be understood is named, and asked again.
printf '%s\n' 'no idea' '0,25' '' nan '1/0' 1e999 0.25 row bb 7 b >answers.txt
quiz 'bad input' --question 3 <answers.txt
says 'bad input' 'not “no idea”' 'Decimals follow a point.' 'not “”' 'not “nan”' 'not “1/0”' 'not “1e999”' 'not “row”' 'not “7”' 'A letter from a to b is wanted' '2 of 2 right so far'
quiz 'input that steers the terminal' --question 3 < <(printf 'a\x1b[2Jb\n')
if grep -q $'\x1b' out.txt; then bad 'an escape character'; else ok; fi
quiz 'noise' --question 1 < <(head -c 3000 /dev/urandom)

# The end of the answers, wherever it comes.
quiz 'no answers' </dev/null
says 'no answers' 'The answers end here. 0 of 0 right so far'
quiz 'no answers given' --answers ''
says 'no answers given' 'The answers end here.'
quiz 'q leaves' < <(printf '1e-11\nq\n')
says 'q leaves' '1 of 1 right so far'
quiz 'no line end' --question 3 < <(printf '0.25')
says 'no line end' '1 of 1 right so far'

# On a terminal: the prompt, and what is typed only once.
if command -v script >/dev/null; then
    printf '0.25\nq\n' | script -qec "env TERM=dumb $(printf %q "$lesson") --question 3" /dev/null >out.txt 2>&1 && grep -q 'Right\.' out.txt && ok || bad 'on a terminal' "$(tail -n 5 out.txt)"
fi

"$lesson" --help >out.txt 2>&1 && grep -q -- --answers out.txt && ok || bad '--help' "$(cat out.txt)"
declines 'an unknown flag' --nonsense
declines 'a question that is not there' --question 4
declines 'a seed that is no number' --seed seven
finish
