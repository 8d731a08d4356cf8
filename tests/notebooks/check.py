"""What of the notebooks needs no jupyter: traces.py refuses what is broken and runs what is missing; every figure of
every notebook holds data, names its axes, and has labels that can be read; every question knows right from wrong.

    check.py FOLDER [NOTEBOOK…]    FOLDER is for scratch; its traces are made anew, unless LOOKBACK_OUT names others

LOOKBACK_QUICK is 1 unless it is set: quick traces, and no figures of trained parts.
"""

import copy
import json
import os
import pathlib
import re
import shutil
import sys
import warnings

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
scratch = pathlib.Path(sys.argv[1])
if "LOOKBACK_OUT" not in os.environ:
    os.environ["LOOKBACK_OUT"] = str(scratch / "traces")
    shutil.rmtree(scratch / "traces", ignore_errors=True)
scratch.mkdir(parents=True, exist_ok=True)
os.environ.setdefault("LOOKBACK_QUICK", "1")
sys.path.insert(0, str(ROOT / "notebooks"))

import matplotlib  # noqa: E402
import numpy as np  # noqa: E402

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import questions  # noqa: E402
import traces  # noqa: E402

failures = []


def check(good, what):
    if not good:
        failures.append(what)
        print("FAILED:", what, file=sys.stderr)


# ---- traces.py

GOOD = {
    "schema": "lookback-trace/1", "lesson": "x", "seed": 1, "real": "double", "config": {}, "tokens": ["a"],
    "series": [{"name": "s", "x_label": "t", "x": [1, 2], "y_label": "norm", "y_unit": "m", "y": [1, "NaN"]}],
    "matrices": [{"name": "m", "shape": [1, 2], "data": [1, "Infinity"]}], "checks": [], "paths": [],
    "predictions": []}


def refused(words, call):
    try:
        call()
    except traces.TraceError as error:
        check(all(word in str(error) for word in words), f"{words} not in: {error}")
    else:
        check(False, f"not refused: {words}")


def broken_traces():
    path = scratch / "good.json"
    path.write_text(json.dumps(GOOD))
    trace = traces.load(path)
    check(np.isnan(trace.series["s"].y[1]) and np.isinf(trace.matrices["m"].data[0, 1]), "NaN and infinity are read")
    check(trace.series["s"].y_label == "norm (m)", "units are in the labels")
    refused(["x has no series “r”", "but: s"], lambda: trace.series["r"])

    def broken(words, content):
        file = scratch / "broken.json"
        file.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        refused([*words, "broken.json"], lambda: traces.load(file))

    def changed(change):
        other = copy.deepcopy(GOOD)
        change(other)
        return other

    broken(["not JSON"], b"")
    broken(["decode"], b"\xff\xfe")
    broken([], b"[" * 100_000)
    broken(["an object is wanted"], [1, 2])
    broken(["schema is missing"], changed(lambda t: t.pop("schema")))
    broken(["lookback-trace/2"], changed(lambda t: t.update(schema="lookback-trace/2")))
    broken(["series[0]", "2 x and 1 y"], changed(lambda t: t["series"][0]["y"].pop()))
    broken(["series[0].y[1]", "null"], changed(lambda t: t["series"][0].update(y=[1, None])))
    broken(["series[0].y[1]"], changed(lambda t: t["series"][0].update(y=[1, "nan"])))
    broken(["series[0].y[1]"], changed(lambda t: t["series"][0].update(y=[1, True])))
    broken(["matrices[0]", "shape"], changed(lambda t: t["matrices"][0].update(shape=[2, 2])))
    broken(["tokens[0]"], changed(lambda t: t.update(tokens=[1])))
    refused(["no such file"], lambda: traces.load(scratch / "none.json"))


# A lesson of a few lines of shell, which writes its flags into its trace.
LESSON = r"""#!/bin/sh
echo run >>"$COUNT"
quick=false file=
for flag; do
    case $before in --out) file=$flag/98_x.json ;; --trace) file=$flag ;; esac
    [ "$flag" = --quick ] && quick=true
    before=$flag
done
mkdir -p "${file%/*}"
[ "$1" = --nothing ] || printf '%s' "$TRACE" | sed "s/\"config\": {}/\"config\": {\"quick\": $quick}/" >"$file"
exit "${CODE:-0}"
"""


def runs():
    """When a lesson runs, and when its trace is good enough."""
    folder, before = scratch / "lessons", (traces.FOLDER, traces.QUICK, os.environ.get("LOOKBACK_LESSONS"))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "lesson_98_x").write_text(LESSON)
    (folder / "lesson_98_x").chmod(0o755)
    count = folder / "count"
    os.environ.update(LOOKBACK_LESSONS=str(folder), COUNT=str(count), TRACE=json.dumps(GOOD))
    traces.FOLDER, traces.QUICK = folder / "out", False

    def after(runs_so_far, quick, **how):
        trace = traces.run("98", *how.pop("flags", ()), **how)
        check(len(count.read_text().split()) == runs_so_far, f"{how}: {runs_so_far} runs")
        check(trace.config["quick"] == quick, f"{how}: quick is {quick}")

    after(1, True)              # none is there
    after(1, True)              # one is
    after(2, False, full=True)  # it is a quick one
    after(2, False, full=True)
    after(2, False)
    after(3, True, again=True)
    after(4, True, flags=["--lag", "5"])
    after(4, True, flags=["--lag", "5"])
    traces.QUICK = True
    after(4, True, full=True)
    left = folder / "out" / "98_x.json"
    left.write_text(json.dumps(GOOD | {"config": {"break": "x"}}))
    after(5, True)              # a planted fault is in it
    left.write_text("{")
    refused(["98_x.json", "not JSON", "again=True"], lambda: traces.run("98"))
    os.environ["CODE"] = "2"
    refused(["lesson_98_x"], lambda: traces.run("98", again=True))
    refused(["no lesson 97"], lambda: traces.run("97"))
    traces.FOLDER, traces.QUICK = before[:2]
    for name in ("LOOKBACK_LESSONS", "COUNT", "TRACE", "CODE"):
        os.environ.pop(name)
    if before[2] is not None:
        os.environ["LOOKBACK_LESSONS"] = before[2]


# ---- notebooks

def holds_data(axes):
    """Something drawn has two finite numbers that differ; on a log axis, positive ones."""
    drawn = [line.get_ydata() for line in axes.lines if len(line.get_ydata()) > 2]
    drawn += [image.get_array() for image in axes.images] + [c.get_offsets() for c in axes.collections]
    bars = [patch for patch in axes.patches if hasattr(patch, "get_height")]
    drawn += [[bar.get_height() for bar in bars], [bar.get_width() for bar in bars]]
    for numbers in drawn:
        numbers = np.ma.filled(np.ma.asarray(numbers, dtype=float), np.nan).ravel()
        numbers = numbers[np.isfinite(numbers) & ((axes.get_yscale() != "log") | (numbers > 0))]
        if len(numbers) > 1 and np.ptp(numbers) > 0:
            return True
    return False


def overlaps(axes):
    """Whether labels of neighbouring ticks run into each other."""
    for axis, low, high in ((axes.xaxis, "x0", "x1"), (axes.yaxis, "y0", "y1")):
        boxes = [label.get_window_extent() for label in axis.get_ticklabels() if label.get_text() and label.get_visible()]
        boxes.sort(key=lambda box: getattr(box, low))
        tilted = any(label.get_rotation() % 90 for label in axis.get_ticklabels())
        if not tilted and any(getattr(b, low) < getattr(a, high) - 1 for a, b in zip(boxes, boxes[1:])):
            return True
    return False


def cut_off(axes):
    """Whether a bar goes on beyond the axes."""
    low, high = sorted(axes.get_ylim())
    bars = [end for bar in axes.patches if hasattr(bar, "get_height") for end in (bar.get_y(), bar.get_y() + bar.get_height())]
    return any(np.isfinite(y) and not low <= y <= high for y in bars)


def look_at(figure, where):
    figure.canvas.draw()
    count = 0
    for axes in figure.axes:
        if axes.get_label() == "<colorbar>":
            continue
        count += 1
        name = f"{where}, axes {count} ({axes.get_title() or axes.get_ylabel()})"
        shared = axes.get_shared_x_axes().get_siblings(axes), axes.get_shared_y_axes().get_siblings(axes)
        check(holds_data(axes), f"{name} holds no data")
        check(any(a.get_xlabel() for a in shared[0]), f"{name}: what is along x?")
        check(any(a.get_ylabel() for a in shared[1]), f"{name}: what is along y?")
        check(not cut_off(axes), f"{name}: bars are cut off")
        check(not overlaps(axes), f"{name}: labels run into each other")
    return count


def tried(mine, measured, within=0.05, hint=""):
    """In place of question(): that one accepts what was measured and refuses what was not."""
    asked.append(measured)
    said = []
    for answer in (None, measured, measured * (1 + 2 * within) + (within == 0), -measured):
        questions.print = said.append
        question(answer, measured, within, hint)
        del questions.print
    check(mine is None, f"an answer stands in it: {mine}")
    check(np.isfinite(measured) and measured != 0, f"a question about {measured}")
    check([s.split()[0] for s in said] == ["Put", "Right:", "Not", "Not"], f"answers near {measured}: {said}")
    numbers = [float(n) for n in re.findall(r"\d+(?:\.\d+)?", hint)]
    check(hint and not any(abs(n - abs(measured)) <= within * abs(measured) for n in numbers), f"the answer is in: {hint}")


def run(path):
    notebook, names, seen = json.loads(path.read_text(encoding="utf-8")), {"__name__": "__main__"}, 0
    asked.clear()
    for i, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{path.name} cell {i}", "exec"), names)
            for number in plt.get_fignums():
                seen += look_at(plt.figure(number), f"{path.name}, cell {i}")
            plt.close("all")
    check(seen > 2, f"{path.name} draws {seen} axes")
    check(len(asked) > 1, f"{path.name} asks {len(asked)} questions")


asked, question, questions.question = [], questions.question, tried
warnings.simplefilter("error")  # a missing glyph, a layout that does not fit
plt.show = lambda *_, **__: None
broken_traces()
runs()
for notebook in [pathlib.Path(p) for p in sys.argv[2:]] or sorted((ROOT / "notebooks").glob("*.ipynb")):
    run(notebook)
print(f"notebooks: {len(failures)} failures")
sys.exit(1 if failures else 0)
