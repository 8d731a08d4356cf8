#!/usr/bin/env python3
"""Notebooks as they are committed: no outputs, no run counts, no metadata that differs from machine to machine.

    notebooks/tidy.py --check     says which ones are not so, and fails
    notebooks/tidy.py --write     makes them so
"""

import json
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent


def tidy(notebook):
    for i, cell in enumerate(notebook["cells"]):
        cell["id"] = f"cell-{i}"
        cell["metadata"] = {}
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
        if isinstance(cell["source"], str):
            cell["source"] = cell["source"].splitlines(keepends=True)
    notebook["metadata"] = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    notebook["nbformat"], notebook["nbformat_minor"] = 4, 5
    return json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def main():
    if sys.argv[1:] not in (["--check"], ["--write"]):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    untidy = 0
    for path in sorted(FOLDER.glob("*.ipynb")):
        text = path.read_text(encoding="utf-8")
        wanted = tidy(json.loads(text))
        if text == wanted:
            continue
        untidy += 1
        if sys.argv[1] == "--write":
            path.write_text(wanted, encoding="utf-8")
        else:
            print(f"{path.name} holds outputs or metadata: notebooks/tidy.py --write", file=sys.stderr)
    return 1 if untidy and sys.argv[1] == "--check" else 0


if __name__ == "__main__":
    sys.exit(main())
