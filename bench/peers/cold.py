"""Time from nothing: fresh processes that import, score one small run, print, and end.

python bench/peers/cold.py --workloads DIR --trec-eval PATH

Commands take turns; medians. The yardstick is a process that imports numpy, pyarrow and numba:
no program that scores with them can be quicker. Files of programs and data are in the page cache,
compiled Python and compiled kernels are kept where a row does not say otherwise. "A script"
imports the tool, does the job of `scoring` once, and prints the means.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from base import MEASURES
from report import machine, number, publish, spread, table, tell
from scoring import HERE, Entry, choose_files, find_workload
from tools import NAMES, make_tool

CACHE = "RAGCORE_KERNELS_CACHE"
HEAD = ["process", "wall s", "CPU s", "wall / yardstick"]


class Command:
    """A process to start again and again.

    Attributes
    ----------
    fresh : whether every start gets an empty kernel cache.
    """

    def __init__(self, title: str, words: list[str], cache: str = "", fresh: bool = False) -> None:
        self.title, self.words, self.cache, self.fresh = title, words, cache, fresh
        self.wall: list[float] = []
        self.cpu: list[float] = []

    def run(self, timed: bool = True) -> None:
        """One process, from start to end."""
        with tempfile.TemporaryDirectory() as empty:
            place = empty if self.fresh else self.cache
            env = {**os.environ, **({CACHE: place} if place else {})}
            begin, wall = os.times(), time.perf_counter()
            subprocess.run(self.words, check=True, capture_output=True, env=env, cwd=empty)
            end, wall = os.times(), time.perf_counter() - wall
        if timed:
            used = end.children_user - begin.children_user
            self.wall.append(wall)
            self.cpu.append(used + end.children_system - begin.children_system)


def commands(options: argparse.Namespace, folder: Path, cache: str) -> tuple[list[Command], str]:
    """What is started, and what is not installed."""
    python = sys.executable
    run, qrels = (str(folder / f"{n}.arrow") for n in ("run0", f"qrels.{options.labels}"))
    score = [python, "-m", "ragcore", "score", run, "--qrels", qrels]
    found = [
        Command("import numpy, pyarrow, numba", [python, "-c", "import numpy, pyarrow, numba"]),
        Command("python -c pass", [python, "-c", "pass"]),
        Command("ragcore --help", [python, "-m", "ragcore", "--help"]),
        Command("ragcore score, kernels kept", score, cache),
        Command("ragcore score, no kernel kept", score, fresh=True),
    ]
    text = [str(folder / f"{n}.trec") for n in (f"qrels.{options.labels}", "run0")]
    absent = []
    for name in NAMES:
        if name.startswith("ragcore"):
            continue
        entry = Entry(name, make_tool(name, options.trec_eval))
        entry.absent = entry.tool.missing()
        if not entry.absent:
            choose_files(entry, folder, options.labels, "arrow")
        if entry.absent:
            absent.append(f"{name}: {entry.absent}")
        elif name == "trec_eval":
            found.append(Command("trec_eval", entry.tool.command(entry.files)))
        elif name == "ir_measures":
            words = [python, "-m", "ir_measures", *text, *MEASURES]
            found.append(Command("ir_measures, its command", words))
        else:
            words = [python, str(HERE / "tools.py"), name, "--once", *entry.files.values()]
            found.append(Command(f"{name}, a script", words))
    return found, "; ".join(absent)


def main() -> None:
    """Print a Markdown table, and put it in a file if asked to."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", choices=("XS", "S", "M"), default="S")
    parser.add_argument("--labels", choices=("sparse", "pooled"), default="sparse")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--fresh-repeats", type=int, default=3, help="with an empty kernel cache")
    parser.add_argument("--workloads", type=Path, help="folder of S/, M/; else they are made")
    parser.add_argument("--trec-eval", default="", metavar="PATH", help="the trec_eval program")
    parser.add_argument("--update", type=Path, metavar="FILE",
                        help="put the result between its marks in a Markdown file")  # fmt: skip
    options = parser.parse_args()
    folder = find_workload(options).absolute()
    with tempfile.TemporaryDirectory() as cache:
        started, absent = commands(options, folder, cache)
        for command in started:
            if not command.fresh:
                command.run(timed=False)
        for turn in range(options.repeats):
            for command in started:
                if not command.fresh or turn < options.fresh_repeats:
                    command.run()
            tell(f"turn {turn + 1} of {options.repeats}")
    base, rows = started[0], []
    for one in started:
        ratio = spread([a / b for a, b in zip(one.wall, base.wall, strict=False)])
        rows.append([one.title, spread(one.wall), number(statistics.median(one.cpu)), ratio])
    lines = [machine(), "", *table(HEAD, rows, True), *(["", absent] if absent else [])]
    publish(f"cold {options.size} {options.labels}", lines, options.update)


if __name__ == "__main__":
    main()
