#!/usr/bin/python3
"""Ours and PyTorch in turn, round by round in one run: medians, quartiles and ratios.

    compare.py [options] PROGRAM...      programs built of bench.cpp, one a precision; tests/bench/run makes them

A ratio counts only if both sides answer the same: the loss, and of every gradient that is kept its norm and its product
with a fixed vector. Times are the process's processor time: what else runs on the machine disturbs caches, not clocks.
"""
import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
README = os.path.join(HERE, "..", "..", "README.md")
INSTRUCTIONS = os.path.join(HERE, "instructions.txt")
TOLERANCE = {"float": 1e-3, "double": 1e-9}  # of a gradient's norm
TINY = {"float": 1e-30, "double": 1e-290}  # near the denormals, where relative differences mean nothing

# What a row is called, the workload on both sides, and the ratio that we want of the float build.
WORKLOADS = [
    ("RNN cells T500 B32 H128, every h's gradient kept", "rnn T500 B32 H128", 0.33),
    ("RNN cells T100 B32 H64", "rnn T100 B32 H64", 0.15),
    ("RNN cells T100 B32 H256", "rnn T100 B32 H256", 0.50),
    ("RNN cells T100 B1 H16", "rnn T100 B1 H16", 0.025),
    ("RNN cells T100 B32 H128, op by op", "rnn-composed T100 B32 H128", None),
    ("100,000 additions of scalars", "chain T100000", 0.02),
    ("100,000 additions of 4 by 4", "chain-4x4 T100000", 0.02),
    ("LSTM cells T100 B32 H128", "lstm T100 B32 H128", 0.42),
    ("LSTM cells T100 B32 H128, op by op", "lstm-composed T100 B32 H128", None),
    ("LSTM against nn.LSTM T100 B32 H128", "lstm-layer T100 B32 H128", 0.42),
    ("GRU cells T100 B32 H128", "gru T100 B32 H128", 0.42),
    ("GRU cells T100 B32 H128, op by op", "gru-composed T100 B32 H128", None),
    ("GRU against nn.GRU T100 B32 H128", "gru-layer T100 B32 H128", 0.45),
    ("causal attention B32 T128, 8 heads of 64", "attention B32 N8 T128 D64", 0.55),
    ("the same in one op, attend", "attention-fused B32 N8 T128 D64", 0.40),
    ("decoder with additive attention B32 T100 D128, 20 steps", "decoder B32 T100 D128 S20", 0.38),
    ("encoder block against nn.TransformerEncoderLayer B16 T128 E128, 4 heads, inner 512",
     "encoder B16 T128 E128 N4 F512", 0.85),
    ("one training step of the dates model B64", "dates B64", 0.40),
]
SCORES = ["dot", "scaled-dot", "bilinear", "additive"]
WIDTHS = [16, 32, 64, 128, 256, 512]
QUICK = dict(B=3, T=6, H=8, N=2, D=8, E=8, F=16, S=3, Q=4)  # the most of each size

# Kind, its sizes at three lengths, what the least is that a step must keep (besides the input), in numbers.
LENGTHS = [("RNN, every h's gradient kept", "rnn T{} B32 H128", (250, 500, 1000), "h, its gradient", 2 * 32 * 128),
           ("LSTM, every h's gradient kept", "lstm T{} B32 H128", (250, 500, 1000), "h, c, 4 gates, h's gradient",
            7 * 32 * 128),
           ("decoder with additive attention, a step", "decoder B32 T100 D128 S{}", (10, 20, 40),
            "tanh of all pairs, weights, s, context", 32 * (100 * 128 + 100 + 2 * 128))]
COUNTED = ["rnn T20 B4 H16", "lstm T20 B4 H16", "gru T20 B4 H16", "attention B1 N2 T16 D8", "chain T1000"]


class Side:
    """One of the two programs."""

    def __init__(self, *command):
        self.command = command
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        (self.precision, self.kernel, self.threads), = self.answer()

    def answer(self):
        lines = []
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise SystemExit(f"{' '.join(self.command)} ended with {self.process.wait()}")
            if line == "end\n":
                return lines
            lines.append(line.split())

    def do(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.answer()

    def seconds(self, least):
        return [float(t) for t in self.do(f"round {least}")[0]]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()


def sides(program):
    ours = Side(program)
    theirs = Side("/usr/bin/python3", os.path.join(HERE, "workloads.py"), ours.precision)
    for what in ("kernel", "threads"):
        a, b = getattr(ours, what), getattr(theirs, what)
        if a != b:
            raise SystemExit(f"the two sides multiply differently: {a} and {b} ({what} of OpenBLAS)")
    return ours, theirs


def difference(ours, theirs):
    """The largest, as a part of the gradient's norm."""
    a, b = ({name: (float(norm), float(product)) for name, norm, product in side.do("answer")} for side in (ours, theirs))
    if a.keys() != b.keys():
        raise SystemExit(f"kept by one side only: {' '.join(sorted(a.keys() ^ b.keys()))}")
    worst = 0
    for name in a:
        size = max(a[name][0], b[name][0])
        if size < TINY[ours.precision]:
            continue
        apart = max(abs(x - y) for x, y in zip(a[name], b[name]))
        worst = max(worst, apart / size if apart == apart else float("inf"))
    return worst


def summary(values):
    if len(values) < 2:
        return {"median": values[0], "quartiles": [values[0]] * 2}
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return {"median": middle, "quartiles": [low, high]}


def compare(ours, theirs, workload, rounds, least):
    for side in (ours, theirs):
        side.do("work " + workload)
    apart = difference(ours, theirs)
    times = {ours: [], theirs: []}
    for r in range(rounds + 1):  # the first warms up
        for side in (ours, theirs) if r % 2 else (theirs, ours):
            times[side].append(side.seconds(least))
    a, b = ([t[0] for t in times[side][1:]] for side in (ours, theirs))
    return {"workload": workload, "precision": ours.precision, "difference": apart,
            "same": apart <= TOLERANCE[ours.precision], "ours": summary(a), "pytorch": summary(b),
            "ratio": summary([x / y for x, y in zip(a, b)]),
            "backward / forward": summary([t[2] / t[1] for t in times[ours][1:]]), "seconds": {"ours": a, "pytorch": b}}


def cell(s, scale=1.0, form=".3g"):
    low, high = s["quartiles"]
    return f"{s['median'] * scale:{form}} ({low * scale:{form}}–{high * scale:{form}})"


def smaller(workload):
    kind, *sizes = workload.split()
    return " ".join([kind] + [size[0] + str(min(int(size[1:]), QUICK[size[0]])) for size in sizes])


def machine():
    try:
        with open("/proc/cpuinfo") as info:
            name = re.search(r"model name\s*:\s*(.*)", info.read())[1]
    except (OSError, TypeError):
        name = platform.machine()
    return name


# ---- What is printed

def table(head, rows):
    print()
    for row in [head, ["---"] * len(head)] + rows:
        print("| " + " | ".join(row) + " |", flush=True)


def compare_all(args, only):
    results = []
    for program in args.program:
        ours, theirs = sides(program)
        with ours, theirs:
            print(f"\n{machine()}, OpenBLAS {ours.kernel}, {ours.threads} thread, {ours.precision}: "
                  f"medians (quartiles) of {args.rounds} rounds"
                  + (", all sizes cut down" if args.quick else ""), flush=True)
            rows = [(name, workload, goal) for name, workload, goal in WORKLOADS
                    if not only or any(word in workload or word in name for word in only)]
            print("| workload | ours, ms | PyTorch, ms | ratio | goal |\n|---|---|---|---|---|")
            for name, workload, goal in rows:
                r = compare(ours, theirs, smaller(workload) if args.quick else workload, args.rounds, args.least)
                r.update(name=name, goal=goal, kernel=ours.kernel)
                results.append(r)
                ratio = cell(r["ratio"]) if r["same"] else f"none: the answers differ by {r['difference']:.1e}"
                print(f"| {name} | {cell(r['ours'], 1e3)} | {cell(r['pytorch'], 1e3)} | {ratio} | {goal or ''} |", flush=True)
                if workload.startswith("chain") and not args.quick:
                    print(f"| … a node, ns | {r['ours']['median'] * 1e4:.0f} | {r['pytorch']['median'] * 1e4:.0f} | | |")
            if not only or "scores" in only:
                results += compare_scores(args, ours, theirs)
    return results


def compare_scores(args, ours, theirs):
    """The four scoring functions by width: 32 queries with 64 keys, 8 times."""
    results, rows = [], []
    for d in [8] if args.quick else WIDTHS:
        row = [str(d)]
        for kind in SCORES:
            workload = f"{kind} B8 Q32 T64 D{d}"
            r = compare(ours, theirs, smaller(workload) if args.quick else workload, args.rounds, args.least)
            r.update(name=f"{kind} score, d = {d}", goal=None, kernel=ours.kernel)
            results.append(r)
            ratio = f"{r['ratio']['median']:.2f}" if r["same"] else "differ"
            row.append(f"{r['ours']['median'] * 1e3:.3g} / {r['pytorch']['median'] * 1e3:.3g}: {ratio}")
        dot, additive = results[-4], results[-1]
        row.append(f"{additive['ours']['median'] / dot['ours']['median']:.1f}")
        rows.append(row)
    table(["d"] + [f"{kind}, ms: ours / PyTorch" for kind in SCORES] + ["additive / dot, ours"], rows)
    return results


def memory(args):
    """Peak memory by length, and that it grows by the same amount for each step."""
    rows = []
    for program in args.program:
        for name, workload, lengths, what, least in LENGTHS:
            if args.quick:
                lengths = (2, 4, 8)
            grown = []
            for side in (lambda: Side(program),
                         lambda: Side("/usr/bin/python3", os.path.join(HERE, "workloads.py"), precision)):
                peaks = []
                for length in lengths:
                    with side() as one:
                        precision = one.precision
                        one.do("work " + workload.format(length))
                        peaks.append(int(one.do("peak")[0][0]))
                grown.append([(peaks[i + 1] - peaks[i]) / (lengths[i + 1] - lengths[i]) / 1024 for i in range(2)])
            (a, b), (c, d) = grown
            least *= {"float": 4, "double": 8}[precision] / 1024
            rows.append([f"{name}, {precision}", f"{a:.1f}, {b:.1f}", f"{c:.1f}, {d:.1f}",
                         f"{b / d:.2f}" if d else "", f"{least:.0f}: {what}"])
    table(["KiB a step, of the first and the second doubling", "ours", "PyTorch", "ratio", "least, besides the input"], rows)


def growth(args):
    """Time a step from 100 to a million steps; backward against forward where products dominate."""
    for program in args.program:
        with Side(program) as ours:
            rows = []
            for T in [10, 100] if args.quick else [10 ** k for k in range(2, 7)]:
                ours.do(f"work rnn-layer T{T} B1 H8")
                ours.seconds(0)
                rows.append([f"{T:,}", f"{statistics.median(ours.seconds(args.least)[0] for _ in range(3)) / T * 1e9:.0f}"])
            table([f"RNN B1 H8, {ours.precision}: steps", "ns a step"], rows)
            rows = []
            for workload in ("rnn-layer T100 B32 H256", "lstm-layer T100 B32 H256", "gru-layer T100 B32 H256",
                             "encoder B16 T128 E128 N4 F512"):
                ours.do("work " + (smaller(workload) if args.quick else workload))
                ratios = [t[2] / t[1] for t in (ours.seconds(args.least) for _ in range(args.rounds))]
                rows.append([workload, cell(summary(ratios))])
            table([ours.precision, "backward / forward"], rows)


def denormals(args):
    """An RNN with its loss on the last h alone, whose gradients vanish: with denormal numbers and without."""
    rows = []
    workload = "rnn-last T1000 B32 H128"
    for program in args.program:
        ours, theirs = sides(program)
        with ours, theirs:
            times = {(side, flush): [] for side in (ours, theirs) for flush in (0, 1)}
            for side in (ours, theirs):
                side.do("work " + (smaller(workload) if args.quick else workload))
            for _ in range(args.rounds):
                for side, flush in times:
                    side.do(f"flush {flush}")
                    times[side, flush].append(side.seconds(args.least)[0])
            for name, side in (("ours", ours), ("PyTorch", theirs)):
                kept, flushed = times[side, 0], times[side, 1]
                rows.append([f"{name}, {ours.precision}", cell(summary(kept), 1e3), cell(summary(flushed), 1e3),
                             cell(summary([b / a for a, b in zip(kept, flushed)]))])
    table([workload, "denormals kept, ms", "flushed, ms", "flushed / kept"], rows)


def instructions(args):
    """Of one pass, by callgrind: what three passes take more than one, halved."""
    kept = {}
    if os.path.exists(INSTRUCTIONS):
        with open(INSTRUCTIONS) as file:
            kept = {name.strip(): int(count) for name, _, count in
                    (line.rpartition(" ") for line in file if line.strip() and not line.startswith("#"))}
    counts, rows = {}, []
    for workload in COUNTED:
        total = []
        for passes in (1, 3):
            run = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", args.program[0]],
                                 input=f"work {workload}\n" + "once\n" * passes, capture_output=True, text=True)
            found = re.search(r"Collected : (\d+)", run.stderr)
            if run.returncode or not found:
                raise SystemExit(run.stderr)
            total.append(int(found[1]))
        counts[workload] = (total[1] - total[0]) // 2
        before = kept.get(workload)
        rows.append([workload, f"{counts[workload]:,}", f"{before:,}" if before else "",
                     f"{counts[workload] / before - 1:+.2%}" if before else ""])
    table(["instructions of one pass", "now", "kept", "difference"], rows)
    if args.keep:
        with open(INSTRUCTIONS, "w") as file:
            file.write("# Instructions of one pass, forward and backward, counted by callgrind: tests/bench/run --instructions.\n"
                       f"# {args.built}\n")
            file.writelines(f"{workload} {count}\n" for workload, count in counts.items())


def write_readme(results, rounds):
    """The table between README's marks."""
    by_name = {}
    for r in results:
        if r["workload"].split()[0] not in SCORES:
            by_name.setdefault(r["name"], {})[r["precision"]] = r
    lines = [f"On {machine()} with OpenBLAS's {results[0]['kernel']} kernel and one thread: the median of {rounds} rounds, "
             "and the ratio's quartiles.", "",
             "| workload | ours, ms | PyTorch 1.13.1, ms | ratio in float | in double |", "|---|---|---|---|---|"]
    for name, found in by_name.items():
        one = found.get("float") or found.get("double")
        ratios = [cell(found[p]["ratio"], form=".2g") if found.get(p, {}).get("same") else "–" for p in ("float", "double")]
        ours, theirs = (f"{ms:.3g}" if ms < 1000 else f"{ms:,.0f}" for ms in (one[side]["median"] * 1e3 for side in ("ours", "pytorch")))
        lines.append(f"| {name} | {ours} | {theirs} | "
                     f"{ratios[0]} | {ratios[1]} |")
    with open(README) as file:
        text = file.read()
    block = "<!-- tests/bench/run --readme -->\n" + "\n".join(lines) + "\n<!-- end -->"
    text, found = re.subn(r"<!-- tests/bench/run --readme -->\n.*?<!-- end -->", lambda _: block, text, flags=re.S)
    if not found:
        raise SystemExit("README.md has no marks for the table")
    with open(README, "w") as file:
        file.write(text)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("program", nargs="+")
    arguments.add_argument("--only", action="append", default=[])
    arguments.add_argument("--rounds", type=int, default=15)
    arguments.add_argument("--least", type=float, default=0.05, help="seconds of a round")
    arguments.add_argument("--json")
    for flag in ("quick", "memory", "denormals", "instructions", "keep", "readme"):
        arguments.add_argument("--" + flag, action="store_true")
    arguments.add_argument("--built", default="", help="how the program was built, for instructions.txt")
    args = arguments.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # of both sides
    if args.quick:
        args.rounds, args.least = 2, 0

    others = [f for f, asked in ((memory, args.memory), (growth, args.memory), (denormals, args.denormals),
                                 (instructions, args.instructions)) if asked]
    for f in others:
        f(args)
    if others and not args.quick:
        return 0
    results = compare_all(args, args.only)
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"machine": machine(), "rounds": args.rounds, "results": results}, file, indent=1)
    if args.readme:
        write_readme(results, args.rounds)
    different = [r["name"] for r in results if not r["same"]]
    print(f"\nbench: {len(results)} comparisons, " + (f"{len(different)} answers differ: {', '.join(different)}" if different
                                                       else "all answers agree"))
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
