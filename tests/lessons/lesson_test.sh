#!/usr/bin/env bash
# A lesson as learners run it. Usage: lesson_test.sh LESSON_PROGRAM SOURCE_DIR NUMBER
# tests/lessons/learners.txt holds what they type: right and wrong answers, and the faults to put in, each with the checks
# that notice it.
set -uo pipefail
lesson=$1 source=$2 number=$3
source "$source/tests/lessons/check.sh"

works 'the lesson'
as_expected "$number"
traced
"$lesson" --help >out.txt 2>&1 || bad '--help' "$(cat out.txt)"
cp out.txt help.txt
refuses 'a prediction of nothing' '--predict' --predict nonsense=1
refuses 'a prediction that is no number' 'NAME=NUMBER' --predict nonsense
refuses 'an answer without a number' '--answer' --answer nonsense
refuses 'two numbers for an answer' '1=2' --answer nonsense=1 2
refuses 'an exercise that is not there' '--answer' --answer nonsense 1
refuses 'a fault that is not there' '--break' --break nonsense

every_check_can_fail
every_check_has_failed "$number"

declared() { sed "1,/^This lesson's own/d" help.txt | grep -oE -- "^  $1 [^ ]+" | awk '{ print $2 }'; }
while read -r _ what name value wrong; do
    case $what in
        answer)
            if "$lesson" --answer "$name" "$value" >out.txt 2>&1 && grep -q '^Right' out.txt; then ok; else bad "$name = $value is right" "$(cat out.txt)"; fi
            code=0
            "$lesson" --answer "$name=$wrong" >out.txt 2>&1 || code=$?
            if [[ $code == 1 ]] && grep -q '^Hint: ' out.txt; then ok; else bad "$name = $wrong is wrong (exit $code)" "$(cat out.txt)"; fi
            code=0
            "$lesson" --answer "$name=$value/1" --answer "$name" "$wrong" >out.txt 2>&1 || code=$?
            if [[ $code == 1 ]] && grep -q '^Right' out.txt && grep -q '^Hint: ' out.txt; then ok; else bad "two answers for $name (exit $code)" "$(cat out.txt)"; fi
            for junk in 1/0 0/0 1/ /2 1/2/3 1/x half; do refuses "$name = $junk" "$junk" --answer "$name" "$junk"; done
            ;;
        predict)
            works "predicting $name" --predict "$name=$value"
            grep -qF "you guessed $value" out.txt && ok || bad "the guess of $name is not shown"
            ;;
        break)
            code=0
            "$lesson" --quick --break "$name" >out.txt 2>err.txt || code=$?
            if [[ $code == 1 ]] && grep -q FAILS out.txt && grep -q '^Broken on purpose' out.txt && ! grep -q 'No check noticed' out.txt
            then ok; else bad "--break $name (exit $code)" "$(cat err.txt)" "$(tail -n 8 out.txt)"; fi
            noticed=$(sed -n '/^Broken on purpose/,/^Trace/p' out.txt | tr -s ' ,' '\n' | grep "^$number\.")
            [[ $(sort <<<"$noticed" | xargs) == $(printf '%s\n' $value $wrong | sort | xargs) ]] && ok || bad "who notices $name" "$noticed"
            ;;
        *) bad "learners.txt: $what?" ;;
    esac
done < <(grep "^$number " "$source/tests/lessons/learners.txt")

# Nothing that the lesson offers is left out there.
for what in answer predict break; do
    for name in $(declared "--$what"); do
        [[ $name != measured ]] || continue
        if grep -q "^$number $what $name " "$source/tests/lessons/learners.txt"; then ok; else bad "learners.txt has no line for $number $what $name"; fi
    done
done
finish
