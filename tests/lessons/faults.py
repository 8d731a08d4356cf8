#!/usr/bin/env python3
"""Shows that each check of the lessons can fail: plants faults in a lesson's own code, one at a time, and sees who notices.

    tests/lessons/faults.py BUILD [NUMBER…]            plants the faults of faults.txt again: each must be noticed
    tests/lessons/faults.py BUILD --search [NUMBER…]   looks for faults for checks that have none, and adds them to faults.txt

BUILD is a folder that the lessons were built in by ninja (build/native-…). Nothing in it, and no source, is changed: a
lesson with a fault is compiled and run in a temporary folder.
"""
import argparse, concurrent.futures, json, os, pathlib, random, re, subprocess, sys, tempfile, threading

root = pathlib.Path(__file__).resolve().parents[2]
table = root / "tests/lessons/faults.txt"


class Lesson:
    def __init__(self, build, number):
        self.number, self.build = number, build
        self.file = next((root / "lessons").glob(f"{number}_*.cpp"))
        self.lines = self.file.read_text().split("\n")
        self.folder = tempfile.TemporaryDirectory()
        target = f"lesson_{self.file.stem}"
        steps = subprocess.run(["ninja", "-C", build, "-t", "commands", target], capture_output=True, text=True, check=True)
        self.compile = next(c for c in steps.stdout.splitlines() if str(self.file) in c)
        self.link = steps.stdout.splitlines()[-1]
        self.object = re.search(r" -o (\S+)", self.compile)[1]
        self.program = re.search(r" -o (\S+)", self.link)[1]

    def failing(self, line, text, full=False):
        """The checks that fail where that line is replaced by the text; None if the program can't be compiled, or crashes."""
        folder = pathlib.Path(self.folder.name)
        lines = list(self.lines)
        if line is not None:
            lines[line] = text
        (folder / self.file.name).write_text("\n".join(lines))
        here = lambda command: (
            command.replace(str(self.file), str(folder / self.file.name))
            .replace(self.object, str(folder / "lesson.o"))
            .replace(f"-o {self.program} ", f"-o {folder}/lesson ")
        )
        trace = folder / "trace.json"
        trace.unlink(missing_ok=True)
        for command in (here(self.compile), here(self.link)):
            if subprocess.run(command, shell=True, cwd=self.build, capture_output=True).returncode:
                return None
        run = [folder / "lesson", "--trace", trace] + ([] if full else ["--quick"])
        try:
            subprocess.run(run, cwd=folder, capture_output=True, timeout=300 if full else 30,
                           env=dict(os.environ, OPENBLAS_NUM_THREADS="1"))
            checks = json.loads(trace.read_text())["checks"]
        except (subprocess.TimeoutExpired, OSError, ValueError):
            return None
        self.ids = [c["id"] for c in checks]
        return {c["id"] for c in checks if not c["pass"]}


# ---- the search: small changes to a line, outside its strings

OPERATORS = [(" + ", " - "), (" - ", " + "), (" * ", " / "), (" / ", " * "), (" += ", " -= "), (" < ", " <= "),
             (" <= ", " < "), (" > ", " >= "), (" == ", " != "), (" != ", " == "), (" && ", " || "), ("std::max", "std::min"),
             ("std::min", "std::max"), ("std::exp(", "std::cos("), ("std::sqrt(", "std::abs("), ("true", "false"),
             ("false", "true"), ("++", "--"), (" ? ", " ? 0 * "), ("tanh(", "exp("), ("softmax(", "exp("),
             ("return ", "return -"), (" = ", " = 2 * "), ("push_back(", "push_back(2 * "), (".begin()", ".begin() + 1"),
             ("max_element", "min_element"), ("shortest", "longest")]


def changes(line):
    if re.match(r"\s*(//|#|static_assert|using|template|lesson\.(say|step|predict|exercise|damage|line))", line):
        return
    code = re.sub(r'"(?:[^"\\]|\\.)*"|//.*', lambda m: "\0" * len(m[0]), line)
    for before, after in OPERATORS:
        for m in re.finditer(re.escape(before), code):
            yield line[: m.start()] + after + line[m.end() :]
    for m in re.finditer(r"(?<![\w.])\d+(?:\.\d+)?(?:e-?\d+)?(?![\w.])", code):
        number = m[0]
        for changed in [str(int(number) + 1) if number.isdigit() else str(float(number) * 1.25), "0"]:
            yield line[: m.start()] + changed + line[m.end() :]


def check_statements(lines):
    """For each id, the lines of the statement lesson.check("id", …)."""
    where = {}
    for i, line in enumerate(lines):
        for id in re.findall(r'"(\w+\.\w+)"', line):
            end = i
            while end < len(lines) - 1 and ";" not in lines[end]:
                end += 1
            where.setdefault(id, range(i, end + 1))
    return where


def noticed_by_switches(number):
    """The checks that a fault of the lesson's own, --break SWITCH, makes fail."""
    words = [line.split() for line in (root / "tests/lessons/learners.txt").read_text().splitlines()]
    return {id for w in words if w[:2] == [number, "break"] for id in w[3:]}


def search(lesson, known, full, limit, keep):
    """Looks for a fault for every check that has none yet, until the limit is met."""
    seen = {id for _, _, ids in known for id in ids} | noticed_by_switches(lesson.number)
    if lesson.failing(None, None, full):
        sys.exit(f"{lesson.number}: a check fails without any fault")
    wanted = set(lesson.ids) - seen
    statements = check_statements(lesson.lines)
    inside = {i for lines in statements.values() for i in lines}
    tried, draw = set(), random.Random(1)

    def attempt(line):
        """Every change of a line, until one is noticed by a check that has no fault yet."""
        for text in changes(lesson.lines[line]):
            if len(tried) >= limit or (line, text) in tried or lesson.lines.count(lesson.lines[line]) > 1:
                continue
            tried.add((line, text))
            new = (lesson.failing(line, text, full) or set()) & wanted
            if new:
                keep((lesson.lines[line].strip(), text.strip(), ["--full"] * full + sorted(new)))
                wanted.difference_update(new)
                print(f"{lesson.number}: {', '.join(sorted(new))} by {text.strip()}", flush=True)
                return True
        return False

    for id in sorted(wanted):  # from each check upwards, in its own function
        at = statements.get(id, range(0, 1))[0]
        for line in range(at - 1, max(at - 40, 0), -1):
            if id not in wanted or lesson.lines[line].startswith("}"):
                break
            if line not in inside:
                attempt(line)
    rest = [i for i in range(len(lesson.lines)) if i not in inside]
    draw.shuffle(rest)
    for line in rest:
        if not wanted or len(tried) >= limit:
            break
        attempt(line)
    for id in sorted(wanted):  # at last, what is computed within the check itself, but for its numbers
        for line in statements.get(id, []):
            if id in wanted:
                attempt(line)
    print(f"{lesson.number}: {len(tried)} faults tried; no fault for: {', '.join(sorted(wanted)) or '–'}", flush=True)


def replay(lesson, known):
    missed = []
    for before, after, ids in known:
        at = [i for i, line in enumerate(lesson.lines) if line.strip() == before]
        failing = lesson.failing(at[0], after, "--full" in ids) if len(at) == 1 else None
        lost = sorted(set(ids) - {"--full"} - (failing or set()))
        if lost:
            why = "does not notice" if failing is not None else "can't be tried with"
            missed.append(f"{', '.join(lost)} {why}: {after}")
    print(f"{lesson.number}: {len(known)} faults, {len(missed)} missed", flush=True)
    return missed


def read_table():
    rows = {}
    for line in table.read_text().splitlines() if table.exists() else []:
        if line and not line.startswith("#"):
            ids, before, after = line.split("\t")
            number = ids.split()[-1][:2].replace("to", "00")  # tour.…
            rows.setdefault(number, []).append((before, after, ids.split()))
    return rows


HEADER = """# Faults in the lessons' own code that checks have been seen to notice: CHECK… <tab> a line <tab> the line with the fault
# (--full: in whole runs only). tests/lessons/faults.py plants them again (tests/run --all), and --search adds those of new
# checks.
"""


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("build")
    options.add_argument("numbers", nargs="*", metavar="NUMBER")
    options.add_argument("--search", action="store_true", help="look for faults for checks that have none")
    options.add_argument("--full", action="store_true", help="search with whole runs, for checks that --quick leaves out")
    options.add_argument("--limit", type=int, default=150, help="faults tried in a lesson (150)")
    asked = options.parse_intermixed_args()
    numbers = asked.numbers or sorted(f.name[:2] for f in (root / "lessons").glob("[0-9][0-9]_*.cpp"))
    known = read_table()

    writing = threading.Lock()

    def work(number):
        lesson, rows = Lesson(asked.build, number), known.setdefault(number, [])

        def keep(row):
            with writing:
                rows.append(row)
                table.write_text(HEADER + "".join(f"{' '.join(ids)}\t{before}\t{after}\n"
                                                  for number in sorted(known) for before, after, ids in known[number]))

        if not asked.search:
            return replay(lesson, rows)
        search(lesson, list(rows), asked.full, asked.limit, keep)
        return []

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        missed = [line for lines in pool.map(work, numbers) for line in lines]
    if missed:
        print(*missed, sep="\n")
    if not asked.search:
        print(f"faults: {sum(len(known.get(n, [])) for n in numbers)} planted, {len(missed)} of them not noticed as they were")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
