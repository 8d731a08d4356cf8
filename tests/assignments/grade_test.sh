#!/usr/bin/env bash
# What the grader makes of submissions: right ones, empty ones, wrong ones, unlucky ones and hostile ones.
# Usage: grade_test.sh BUILD_DIR SOURCE_DIR
set -uo pipefail
build=$1 here=$2/lessons/assignments
assignment=$here/2_backprop_through_time
top=$(mktemp -d)
chmod 755 "$top"  # a separate user of the grader's must reach the compiler in it
trap 'rm -rf "$top"' EXIT
cd "$top" || exit 1
failed=0 passed=0
ok() { passed=$((passed + 1)); }
bad() { printf 'FAILED: %s\n' "$1"; shift; printf '    %s\n' "$@" | head -n 40; failed=$((failed + 1)); }

# Unoptimised, which takes half the time.
printf '#!/bin/sh\nexec %s "$@" -O0\n' "${CXX:-c++}" >quick-c++
chmod 755 quick-c++
export CXX=$top/quick-c++

course=$build/assignment_course
"$course" cases 2 --hidden 7 >cases.json
"$course" strip "$assignment/reference.cpp" >stub.cpp
cp "$assignment/reference.cpp" right.cpp

# grade FILE [FLAG…]: its output is in out.txt.
grade() {
    local file=$1; shift
    rm -rf work
    mkdir work
    "$build/assignment_grade" --cases - --student "$file" --work work --results results.json \
        --headers "$here/assignment.hpp" "$assignment"/*.hpp --probe "$build/libassignment_2_probe.a" "$@" <cases.json >out.txt 2>&1
}

# Whatever still runs in the submission's folder.
left_over() {
    local cwd
    for cwd in /proc/[0-9]*/cwd; do
        [[ $(readlink "$cwd" 2>/dev/null) == "$top/work"* ]] && echo "${cwd%/cwd}"
    done
}

# scores WHAT FILE POINTS WORDS [FLAG…]: the total; words that the output holds; nothing left running.
scores() {
    local what=$1 file=$2 points=$3 words=$4 start=$SECONDS code=0; shift 4
    grade "$file" "$@" || code=$?
    local total most left
    read -r total most < <(sed -n 's|^  total *\([0-9]*\) / \([0-9]*\).*|\1 \2|p' out.txt)
    left=$(left_over)
    if [[ $total != "$points" ]]; then bad "$what: $total points instead of $points" "$(cat out.txt)"
    elif ! grep -qF -- "$words" out.txt; then bad "$what: does not say '$words'" "$(cat out.txt)"
    elif [[ $left ]]; then bad "$what: still running: $left"
    elif ((code != (total < most))); then bad "$what: exit code $code"
    elif ((SECONDS - start > 180)); then bad "$what: $((SECONDS - start)) s"
    else ok; fi
}

# says WHAT WORDS: what the last output holds.
says() { if grep -qF -- "$2" out.txt; then ok; else bad "$1: does not say '$2'" "$(cat out.txt)"; fi; }

# replaced TASK OLD NEW: the reference with a bug.
replaced() {
    local old=$2 new=$3
    OLD=$old NEW=$new awk '{ at = index($0, ENVIRON["OLD"]); if (at && !done) { $0 = substr($0, 1, at - 1) ENVIRON["NEW"] substr($0, at + length(ENVIRON["OLD"])); done = 1 } print }' right.cpp >submission.cpp
    if cmp -s right.cpp submission.cpp; then bad "task $1: there is no '$old' in the reference"; fi
}

# ---- Right, and empty ----
scores 'the reference' right.cpp 100 'total'
says 'hidden cases ran' "hidden cases (seed 7): "
if grep -q 'seed' results.json; then bad 'students read the seed' "$(cat results.json)"; else ok; fi
scores 'the stub' stub.cpp 0 'total'
for task in 2.1 2.2 2.3 2.4 2.5 2.6 2.7; do
    if grep -q "task $task is not done" out.txt; then ok; else bad "the stub: $task is not named" "$(cat out.txt)"; fi
done

# ---- A bug loses its task's points and no others; well-known ones are recognised ----
replaced 2.1 'a(i, j) + b(0, j)' 'a(i, j)';                 scores 'bug in 2.1' submission.cpp 90 'b is missing'
replaced 2.2 'step(x_t, h.back())' 'step(x_t, h0)';         scores 'bug in 2.2' submission.cpp 90 'every step began from h0'
replaced 2.3 'g.dh[t] += da * transpose(U)' 'g.dh[t] += da * U'
scores 'bug in 2.3' submission.cpp 70 'U stands where its transpose belongs'
replaced 2.4 'double(dh.size() - 1 - t)' 'double(t)';       scores 'bug in 2.4' submission.cpp 85 'the slope has the wrong sign'
replaced 2.5 'rho < 1, norm < 1' 'rho < 1, rho < 1';        scores 'bug in 2.5' submission.cpp 85 'alone promises nothing for the tanh RNN'
replaced 2.6 'if (c.norm > most)' '';                       scores 'bug in 2.6' submission.cpp 90 'were made longer'
replaced 2.7 't % window != 0' '(t + 1) % window != 0';     scores 'bug in 2.7' submission.cpp 90 'the cuts are one step early'

# Those that are easily taken for one another, or show only in part of an answer.
replaced 2.3 'g.dU += transpose(h[t]) * da' 'g.dU = transpose(h[t]) * da'
scores 'dU = in 2.3' submission.cpp 70 'dh, dW, db are right; dU(0,0) is wrong'
says 'dU = in 2.3' 'only one step is left'
replaced 2.3 '1 - h[t + 1].data()[k] * h[t + 1].data()[k]' '1 - h[t].data()[k] * h[t].data()[k]'
scores 'an old slope in 2.3' submission.cpp 70 'not 1 − h[t]²'
says 'an old slope in 2.3' 'Input: x = {[['
replaced 2.4 'if (largest == 0) return 0;' 'largest = 1;'
scores 'underflow in 2.4' submission.cpp 85 'divide by the largest |element| first'
replaced 2.4 'if (d.norms[t] > 0)' '';                      scores 'zeros in 2.4' submission.cpp 85 'left out of the line'
replaced 2.5 'norm = std::sqrt(radius(transpose(U) * U))' 'norm = length({U})'
scores 'Frobenius in 2.5' submission.cpp 85 'that is the Frobenius norm'
replaced 2.5 'if (s == 0) return 0;' 'if (s == 0) return NAN;'
scores 'a power that is 0 in 2.5' submission.cpp 85 'Where a power of U is 0'
replaced 2.6 'g = most / c.norm * g' 'for (double& x : g.data()) x = std::max(-most, std::min(most, x))'
scores 'each element in 2.6' submission.cpp 90 'each element was clipped by itself'
replaced 2.6 'g = most / c.norm * g' 'g = std::min(1.0, most / length({g})) * g'
scores 'each matrix in 2.6' submission.cpp 90 'each matrix was clipped by itself'
replaced 2.7 't % window != 0' '(t - 1) % window != 0';     scores 'a step late in 2.7' submission.cpp 90 'the cuts are one step late'
replaced 2.7 'transpose(jacobian[t])' 'jacobian[t]';        scores 'no transpose in 2.7' submission.cpp 90 'the transpose is missing'

# ---- Hostile and unlucky; several to a submission, as none touches another's task ----
# with TASK CODE…: the reference, in which these tasks' functions begin with that code.
with() {
    cp right.cpp submission.cpp
    while (($#)); do
        CODE=$2 awk -v mark="// BEGIN SOLUTION $1" '{ if (index($0, mark)) print ENVIRON["CODE"]; else print }' submission.cpp >next.cpp
        mv next.cpp submission.cpp
        shift 2
    done
}

sed -i '1i #include <signal.h>\n#include <unistd.h>\n#include <cstdio>\n#include <cstdlib>\n#include <fstream>' right.cpp

with 2.1 'std::exit(0);' \
     2.2 '*(volatile int*)8 = 1;' \
     2.4 'return {std::vector<double>(dh.size(), std::nan("")), 0};' \
     2.7 'return {Matrix(2, 7)};'
scores 'exit(0), segmentation fault, NaN, wrong shape' submission.cpp 55 'it ended by itself, with exit code 0'
says 'segmentation fault' 'segmentation fault'
says 'NaN' 'norms(0) is not finite: nan, should be'
says 'a wrong length' '1 entries, should be 9'

with 2.1 'return Matrix(2, 7);' \
     2.2 'for (;;) std::puts("again and again");' \
     2.6 'std::vector<std::vector<char>> all; for (;;) all.emplace_back(1 << 24, 1);' \
     2.7 'for (volatile int i = 0;; i = i + 1) {}'
scores 'wrong shape, endless output, allocation, loop' submission.cpp 60 'its shape is (2,7), should be (1,2)'
says 'endless output' 'after printing 1 MiB'
says 'endless allocation' 'bad_alloc'
says 'endless loop' 'it was stopped after'

with 2.1 'for (;;) fork();' \
     2.2 'if (fork() == 0) { setsid(); if (fork() == 0) for (;;) pause(); _exit(0); }' \
     2.6 'std::puts("{\"tests\":[{\"score\":100,\"max_score\":100}]}"); std::exit(0);' \
     2.7 "for (const char* f : {\"results.json\", \"../results.json\", \"$top/results.json\"}) std::ofstream(f) << \"{\\\"score\\\": 1000}\"; std::exit(0);"
scores 'forks, a report on stdout, a results.json of its own' submission.cpp 70 'it was stopped after'
says 'a report on stdout' 'It printed: {"tests"'
if python3 -c 'import json; r = json.load(open("results.json")); assert sum(t.get("score", 0) for t in r["tests"]) == 70 and "score" not in r'; then ok; else bad 'results.json' "$(cat results.json)"; fi
with 2.1 'return W + nonsense;';                            scores 'it does not compile' submission.cpp 0 "‘nonsense’ was not declared"
if grep -q 'backprop.cpp:[0-9]*:' out.txt && ! grep -q '/usr/' out.txt; then ok; else bad "the compiler's text" "$(cat out.txt)"; fi
{ printf '\xef\xbb\xbf'; sed 's/$/\r/' "$assignment/reference.cpp"; } >submission.cpp
scores 'CRLF and a byte order mark' submission.cpp 100 'total'

# An answer by another way than returning it is an answer, right or wrong.
with 2.6 'const char s[] = "{\"answer\":{\"norm\":5}}"; if (write(3, s, sizeof s - 1)) _exit(0);' \
     2.7 'kill(getppid(), SIGKILL); kill(-1, SIGKILL);'
if ((EUID == 0)); then  # who runs the grader as root gives submissions a user of their own
    scores 'an answer of its own; killing the grader, in vain' submission.cpp 90 'gradients is missing'
fi
{ cat right.cpp; echo 'int main() {}'; } >submission.cpp;   scores 'a main' submission.cpp 0 'multiple definition'
with 2.1 'std::printf("%g\\n", W(0, 0)); throw std::runtime_error(std::to_string(W(0, 0)));'
python3 - <<'PYTHON'
import json
cases = json.load(open("cases.json"))
cases["cases"] = [c for c in cases["cases"] if c["task"] == "2.1" and c["hidden"]]
cases["tasks"] = [t for t in cases["tasks"] if t["number"] == "2.1"]
json.dump(cases, open("hidden.json", "w"))
print(cases["cases"][0]["input"][2]["data"][0], file=open("secret.txt", "w"))
PYTHON
mv cases.json all.json; mv hidden.json cases.json
scores 'printing a hidden input' submission.cpp 0 'it threw an exception'
if grep -qE -- "$(cut -c1-6 secret.txt)|It printed" out.txt results.json; then bad 'a hidden input is shown' "$(cat out.txt)"; else ok; fi
mv all.json cases.json
# ---- What is not a submission ----
refuses() {
    local what=$1 words=$2 code=0; shift 2
    grade "$@" || code=$?
    if [[ $code == 2 ]] && grep -qF -- "$words" out.txt; then ok; else bad "$what (exit $code)" "$(cat out.txt)"; fi
}
refuses 'no file' 'there is no such file' nowhere.cpp
printf '\xff\xfe#\0' >wide.cpp
refuses 'UTF-16' 'not UTF-8' wide.cpp
refuses 'no such task' 'no task 2.9' stub.cpp --task 2.9
refuses 'an unknown flag' '--nonsense' stub.cpp --nonsense

# ---- One task; the form of results.json; the oracles in the public cases ----
scores 'one task' right.cpp 10 'tanh cell' --task 2.1
if grep -q '2\.2' out.txt; then bad 'one task: others are graded' "$(cat out.txt)"; else ok; fi
grade stub.cpp
if python3 - <<'PYTHON'
import json, math
r = json.load(open("results.json"))
assert set(r) <= {"score", "execution_time", "output", "output_format", "test_output_format", "test_name_format", "visibility", "stdout_visibility", "extra_data", "tests", "leaderboard"}
assert sum(t.get("max_score", 0) for t in r["tests"]) == 100 and sum(t.get("score", 0) for t in r["tests"]) == 0
for t in r["tests"]:
    assert set(t) <= {"score", "max_score", "status", "name", "name_format", "number", "output", "output_format", "tags", "visibility", "extra_data"}
    assert t["status"] in ("passed", "failed")
cases = json.load(open("cases.json"))["cases"]
assert sum(c["hidden"] for c in cases) * 4 >= len(cases)
def case(task, name): return next(c for c in cases if c["task"] == task and c["name"] == name)["expected"]
def near(a, b): assert abs(a - b) <= 1e-9 * abs(b), (a, b)
norm = lambda a: math.hypot(*a["data"])
near(norm(case("2.3", "radius 0, and yet the gradient doubles at every step")["dh"][0]), 5792.618750798)  # O07
turn = case("2.5", "a quarter turn of a stretch"); near(turn["norm"], 1.25); near(turn["radius"], math.sqrt(.625))  # O05
grows = case("2.5", "it grows before it shrinks"); near(grows["norm"], 10.024937810560445); near(grows["radius"], .5)  # O06
near(case("2.5", "radius 0, norm 16")["norm"], 16)
near(case("2.4", "0.9 times a rotation: slope ln 0.9")["slope"], math.log(.9))  # O01
near(case("2.6", "(3) and (4), limit 1")["gradients"][0]["data"][0], .6)  # O33
PYTHON
then ok; else bad 'results.json or the oracles'; fi

if README=$assignment/README.md python3 - <<'PYTHON'
import json, os
README = open(os.environ["README"], encoding="utf-8").read()
cases = json.load(open("cases.json"))
names = [(c["task"], c["hidden"], c["name"]) for c in cases["cases"]]
assert len(names) == len(set(names))
for t in cases["tasks"]:
    assert f'**{t["number"]} {t["title"]} ({t["points"]} points).**' in README, t
PYTHON
then ok; else bad 'names of cases, or titles that differ from the README'; fi

# ---- An index below 0 ----
with 2.2 'for (std::size_t t = x.size() - 1;; --t) step(x[t], h0);'
scores 'an index below 0' submission.cpp 90 'is an unsigned index counted below 0?'
if grep -q 'stl_vector' out.txt; then bad 'an assertion is shown raw' "$(cat out.txt)"; else ok; fi
with 2.2 'std::puts("here\n\n"); return {};'
scores 'printing' submission.cpp 90 'It printed: here'
if grep -A1 'It printed' out.txt | grep -q '^ *$'; then bad 'a blank line after what was printed' "$(cat out.txt)"; else ok; fi

# ---- Flags are looked at before anything is built ----
flags() {
    local what=$1 code=$2 words=$3 got=0; shift 3
    LOOKBACK_BUILD_DIR=$top/none "$here/run" "$@" >out.txt 2>&1 || got=$?
    if [[ $got == "$code" && ! -e $top/none ]] && grep -qF -- "$words" out.txt; then ok; else bad "$what (exit $got)" "$(cat out.txt)"; fi
}
flags 'grade 2 --help' 0 'Exit codes' grade 2 --help
flags 'handout 2 --help' 0 'Exit codes' handout 2 --help
flags 'grade 2 --nonsense' 2 'unknown flag --nonsense' grade 2 --nonsense
flags 'handout 2 --nonsense' 2 'unknown flag --nonsense' handout 2 --nonsense
mkdir full && touch full/file
flags 'a folder that is not empty' 2 'not empty' handout 2 full

# ---- The hand-out: the stub, and no line of a solution ----
"$here/make_handout" "$course" "$assignment" handout
if cmp -s stub.cpp handout/backprop.cpp; then ok; else bad "the hand-out's file is not the stub"; fi
awk '/END SOLUTION/ { inside = 0 } inside && length($0) > 12 { sub(/^ +/, ""); print } /BEGIN SOLUTION/ { inside = 1 }' "$assignment/reference.cpp" >solution.txt
if [[ $(wc -l <solution.txt) -gt 40 ]] && ! grep -nFf solution.txt handout/*.* handout/grader/{calls.cpp,cases.json}; then ok; else bad 'a line of the solution is handed out'; fi
if grep -rqE 'SOLUTION|hidden":true|Generator' handout; then bad 'the hand-out tells too much' "$(grep -rlE 'SOLUTION|hidden":true|Generator' handout)"; else ok; fi

# A compiler that is missing is not taken for a grader that is built.
CXX=false handout/grade >out.txt 2>&1
if [[ $? == 2 && ! -e handout/grader/build/ready ]] && grep -q 'It needs: g++' out.txt; then ok; else bad 'no compiler' "$(cat out.txt)"; fi

# ---- Compiling a student's file is cheap ----
unset CXX
rm -rf work && mkdir work && cp right.cpp "$assignment"/*.hpp "$here/assignment.hpp" work
if [[ -x /usr/bin/time ]]; then
    /usr/bin/time -f '%U %M' c++ -std=c++20 -O1 -Wall -D_GLIBCXX_ASSERTIONS -c work/right.cpp -o work/right.o 2>time.txt
    awk '$1 <= 20 && $2 <= 700 * 1024 { ok = 1 } END { exit !ok }' time.txt && ok || bad 'compiling takes' "$(cat time.txt)"
fi

printf '%d passed, %d failed\n' "$passed" "$failed"
((failed == 0))
