#!/usr/bin/env bash
# The tour as its users run it: any text, any size, and what can't be used. Usage: tour_test.sh LESSON_PROGRAM SOURCE_DIR
set -uo pipefail
lesson=$1 source=$2
source "$source/tests/lessons/check.sh"

works 'the shipped passage'
every_check_can_fail
works 'two tokens' --text 'Hello world'
works 'three tokens' --text 'Hello wide world'
works 'one word, by characters' --chars --text 'abracadabra'
works 'the same word again and again' --text 'no no no no no no'
works 'Chinese' --text '注意力机制让解码器看到每一个词。'
works 'Arabic' --text 'الانتباه ينظر إلى كل كلمة في الجملة.'
works 'emoji' --text 'I 👩‍🔬 see 👍🏽 gradients 🎉🎉 vanish'
works 'combining marks' --text "$(printf 'cafe\xcc\x81 na\xc3\xafve re\xcc\x81sume\xcc\x81')"
works 'control characters' --text "$(printf 'a \x1b[31m red \x07 bell \x1b]0;title\x07 end')"
works 'right-to-left override' --text "$(printf 'abc \xe2\x80\xae def ghi')"
works 'a very long word' --text "see $(printf 'x%.0s' {1..500}) end of it"
works 'another seed' --seed 123456789
works 'forget bias' --forget-bias -3
works 'one hidden unit' --hidden 1
works 'many hidden units' --hidden 100 --text 'a few words are enough here'
seq 1 300 | tr '\n' ' ' >300.txt
works '300 tokens' --file 300.txt
seq 1 10000 | awk '{ printf "w%d ", $1 % 97 }' >10000.txt
works '10,000 tokens' --file 10000.txt
printf '\xef\xbb\xbfwith a mark of byte order\r\nand two lines\r\n' >bom.txt
works 'a file with BOM and CRLF' --file bom.txt

works 'a date' --date '15 mars 1953'
grep -q '→   1953-03-15' out.txt && ok || bad 'the date of a day in March' "$(head -n 5 out.txt)"
refuses 'a date in a script it never saw' 'is not among the' --date '注意'

refuses 'nothing' 'at least two tokens' --text ' '
refuses 'an empty text' 'at least two tokens' --text ''
refuses 'a file without a name' 'there is no such file' --file ''
refuses 'an empty date' 'nothing to translate' --date ''
refuses 'one token' 'at least two tokens' --text 'Hello'
: >empty.txt
refuses 'an empty file' 'at least two tokens' --file empty.txt
refuses 'a missing file' 'nowhere.txt: there is no such file' --file nowhere.txt
refuses 'a folder' 'is a folder' --file .
printf 'caf\xe9 au lait\n' >latin.txt
refuses 'Latin-1' 'not UTF-8' --file latin.txt
printf 'caf\xe9' | xargs -0 "$lesson" --quick --text >/dev/null 2>err.txt
[[ $? != 0 ]] && grep -q 'not UTF-8' err.txt && ok || bad 'invalid UTF-8 as an argument' "$(cat err.txt)"
head -c 1000 /dev/zero >binary.bin
refuses 'a binary file' 'is binary' --file binary.bin
refuses 'two texts' 'two texts' --text 'a b c' --file 300.txt
refuses 'an unknown flag' '--nonsense' --nonsense
refuses 'a seed that is no number' '--seed' --seed seven
refuses 'a negative seed' '--seed' --seed -1
refuses 'no hidden units' '--hidden' --hidden 0
refuses 'a bias that is not finite' '--forget-bias' --forget-bias nan
refuses 'a trace where none can be' 'trace' --trace /proc/none/trace.json
refuses 'a file name that steers the terminal' 'no such file' --file "$(printf 'x\x1b[2J')"

"$lesson" --help >out.txt 2>&1 && grep -q -- --forget-bias out.txt && ok || bad '--help' "$(cat out.txt)"

as_expected 00
traced
every_check_has_failed 00
"$lesson" --quick --seed 2 --trace three.json >/dev/null
if cmp -s one.json three.json; then bad 'two seeds, one trace'; else ok; fi
"$lesson" --quick --out 'a folder/inside' >/dev/null && [[ -s 'a folder/inside/00_tour.json' ]] && ok || bad '--out'

finish
