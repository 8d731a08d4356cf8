"""Traces of lessons, as arrays to plot.

    import traces
    t = traces.run("02")               # its trace; if there is none yet, the lesson runs, in seconds (--quick)
    t = traces.run("04", full=True)    # with the parts that are trained: a minute or two, once
    s = t.series["c = 0.9"]
    plt.semilogy(s.x, s.y); plt.xlabel(s.x_label); plt.ylabel(s.y_label)

What is not a trace is a TraceError that says where and why. Needs numpy only. From the environment:
LOOKBACK_OUT      where the traces are (lookback-out)
LOOKBACK_LESSONS  a folder of built lessons, to be run as they are; else lessons/run builds what it runs
LOOKBACK_QUICK    1: full=True is not heeded, and figures that need it say so
"""

import json
import os
import pathlib
import re
import subprocess
from dataclasses import dataclass, field

import numpy as np

SCHEMA = "lookback-trace/1"
ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = pathlib.Path(os.environ.get("LOOKBACK_OUT", ROOT / "lookback-out"))
QUICK = os.environ.get("LOOKBACK_QUICK", "") not in ("", "0")


class TraceError(ValueError):
    pass


@dataclass
class Series:
    name: str
    x: np.ndarray
    y: np.ndarray
    x_label: str
    y_label: str
    labels: list


@dataclass
class Matrix:
    name: str
    data: np.ndarray
    row_label: str
    column_label: str
    rows: list
    columns: list


@dataclass
class Check:
    id: str
    claim: str
    kind: str
    measured: float
    theory: float
    tolerance: float
    passed: bool
    source: str


class Named(dict):
    """What a trace holds of one kind, by name; what it does not hold is a TraceError that lists what it does."""

    def __init__(self, kind, lesson, parts):
        super().__init__(parts)
        self.kind, self.lesson = kind, lesson

    def __missing__(self, name):
        raise TraceError(f"{self.lesson} has no {self.kind} “{name}”, but: {', '.join(self) or 'none'}")


@dataclass
class Trace:
    lesson: str
    seed: int
    config: dict
    tokens: list
    series: dict
    matrices: dict
    checks: dict
    paths: list = field(default_factory=list)
    predictions: list = field(default_factory=list)
    graph: dict = None

    def full(self):
        """Whether the trained parts are in it. If not, says so in place of what they would show."""
        if self.config.get("quick"):
            print(f"Not shown here: what lesson {self.lesson[:2]} trains. LOOKBACK_QUICK asks for quick runs.")
        return not self.config.get("quick")


class _Part:
    """One object of the file, with the place it stands at, so that errors can name it."""

    def __init__(self, where, value):
        if not isinstance(value, dict):
            raise TraceError(f"{where}: an object is wanted, not {_shown(value)}")
        self.where, self.value = where, value

    def take(self, key, kind, default=None):
        if key not in self.value:
            if default is None:
                raise TraceError(f"{self.where}: {key} is missing")
            return default
        value = self.value[key]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise TraceError(f"{self.where}.{key}: {_shown(value)} is not of the right kind")
        return value

    def number(self, key):
        return _number(self.value.get(key), f"{self.where}.{key}")

    def numbers(self, key):
        values = self.take(key, list)
        return np.array([_number(v, f"{self.where}.{key}[{i}]") for i, v in enumerate(values)], dtype=float)

    def texts(self, key):
        values = self.take(key, list, [])
        for i, v in enumerate(values):
            if not isinstance(v, str):
                raise TraceError(f"{self.where}.{key}[{i}]: a text is wanted, not {_shown(v)}")
        return values

    def parts(self, key):
        return [_Part(f"{key}[{i}]", v) for i, v in enumerate(self.take(key, list, []))]


def _shown(value):
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else text[:40] + "…"


def _number(value, where):
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if value in ("NaN", "Infinity", "-Infinity"):
        return float(value)
    raise TraceError(f"{where}: a number is wanted, not {_shown(value)}")


def _axis(part, which):
    label, unit = part.take(f"{which}_label", str), part.take(f"{which}_unit", str, "")
    return f"{label} ({unit})" if unit else label


def _series(part):
    s = Series(part.take("name", str), part.numbers("x"), part.numbers("y"), _axis(part, "x"), _axis(part, "y"),
               part.texts("labels"))
    if len(s.x) != len(s.y):
        raise TraceError(f"{part.where}: {len(s.x)} x and {len(s.y)} y")
    return s


def _matrix(part):
    shape, data = part.numbers("shape").astype(int), part.numbers("data")
    if len(shape) != 2 or shape.min(initial=0) < 0 or shape[0] * shape[1] != len(data):
        raise TraceError(f"{part.where}: {len(data)} numbers for a shape of {list(shape)}")
    return Matrix(part.take("name", str), data.reshape(shape), part.take("row_label", str, ""),
                  part.take("column_label", str, ""), part.texts("rows"), part.texts("columns"))


def _check(part):
    return Check(part.take("id", str), part.take("claim", str), part.take("kind", str), part.number("measured"),
                 part.number("theory"), part.number("tolerance"), part.take("pass", bool), part.take("source", str, ""))


def load(path):
    """The trace in a file.   raises TraceError naming the file and the place in it"""
    path = pathlib.Path(path)
    try:
        top = _Part("trace", json.loads(path.read_text(encoding="utf-8")))
        schema = top.take("schema", str)
        if schema != SCHEMA:
            raise TraceError(f"its schema is {_shown(schema)}; this page reads {SCHEMA}")
        lesson = top.take("lesson", str)
        return Trace(
            lesson, top.take("seed", int), top.take("config", dict), top.texts("tokens"),
            Named("series", lesson, {s.name: s for s in map(_series, top.parts("series"))}),
            Named("matrix", lesson, {m.name: m for m in map(_matrix, top.parts("matrices"))}),
            Named("check", lesson, {c.id: c for c in map(_check, top.parts("checks"))}),
            [p.value for p in top.parts("paths")], [p.value for p in top.parts("predictions")], top.value.get("graph"))
    except FileNotFoundError:
        raise TraceError(f"{path}: there is no such file") from None
    except (OSError, UnicodeDecodeError, RecursionError) as error:
        raise TraceError(f"{path}: {error}") from None
    except json.JSONDecodeError as error:
        raise TraceError(f"{path}: not JSON: {error}") from None
    except TraceError as error:
        raise TraceError(f"{path}: {error}") from None


def run(number, *flags, full=False, again=False):
    """The trace of a lesson ("02"), which runs if it has left none that will do: one without a planted fault, and if
    full is asked for, one of a full run. With flags of its own the lesson has a trace of its own."""
    full = full and not QUICK
    name = f"{number}{re.sub('[^0-9A-Za-z]+', '-', ' '.join(flags))}.json" if flags else f"{number}_*.json"
    trace = None if again else _found(name)
    if trace is None or "break" in trace.config or (full and trace.config.get("quick")):
        print(f"Lesson {number} runs{': a minute or two' if full else ''} …", flush=True)
        where = ("--trace", str(FOLDER / name)) if flags else ("--out", str(FOLDER))
        _execute(number, *where, *flags, *(() if full else ("--quick",)))
        trace = _found(name)
    if trace is None:
        raise TraceError(f"lesson {number} left no trace in {FOLDER}")
    return trace


def _found(name):
    files = sorted(FOLDER.glob(name))
    try:
        return load(files[0]) if files else None
    except TraceError as error:
        raise TraceError(f"{error} (run(…, again=True) makes it anew)") from None


def _execute(number, *flags):
    command = [str(ROOT / "lessons" / "run"), number]
    if "LOOKBACK_LESSONS" in os.environ:
        command = [str(p) for p in pathlib.Path(os.environ["LOOKBACK_LESSONS"]).glob(f"lesson_{number}_*")][:1]
        if not command:
            raise TraceError(f"{os.environ['LOOKBACK_LESSONS']} (LOOKBACK_LESSONS) has no lesson {number}")
    done = subprocess.run([*command, *flags], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode == 1:
        print(f"Not all checks of lesson {number} hold; lessons/run {number} shows which.", flush=True)
    elif done.returncode:
        raise TraceError(f"{' '.join(command + list(flags))}: {done.stderr.strip()[-500:] or done.returncode}")
