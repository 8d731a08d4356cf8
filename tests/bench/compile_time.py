#!/usr/bin/python3
"""How long each lesson takes to compile, as ninja would do it but one at a time and without ccache.

    compile_time.py BUILD        a build folder of tests/run, whose precompiled headers are made
"""
import json
import os
import re
import statistics
import subprocess
import sys
import time

with open(os.path.join(sys.argv[1], "compile_commands.json")) as file:
    commands = json.load(file)
os.environ["CCACHE_DISABLE"] = "1"
print(f"{'seconds':32} {'least':>6} {'median':>6} {'most':>6}")
for command in commands:
    lesson = re.search(r"/lessons/(\d\d_\w+)\.cpp$", command["file"])
    if lesson:
        seconds = []
        for _ in range(5):
            start = time.monotonic()
            subprocess.run(re.sub(r" -o \S+", " -o /dev/null", command["command"]), shell=True, check=True,
                           cwd=command["directory"])
            seconds.append(time.monotonic() - start)
        print(f"{lesson[1]:32} {min(seconds):6.1f} {statistics.median(seconds):6.1f} {max(seconds):6.1f}", flush=True)
