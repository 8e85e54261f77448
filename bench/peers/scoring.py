"""Score one run with every tool, side by side: 13 measures, each query's values and the means.

python bench/peers/scoring.py --size S --labels sparse
python bench/peers/scoring.py --size M --labels pooled --trec-eval PATH --update bench/README.md

A job goes from files (in the page cache) to values and means. Each tool lives in a process of its
own, where imports and a first, untimed job come before. Then the tools take turns: a tenth of a
second each, or one job if that takes longer; the median of turns counts. So a ratio compares times
of the same minutes. Means are compared before a time is shown. CPU time is that of all threads:
look at it where something else runs on the machine.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

from base import MEASURES, Tool
from report import machine, number, publish, spread, table, tell
from tools import NAMES, make_tool

HERE = Path(__file__).parent
FAILED = "failed"
ENDINGS = {"arrow": "arrow", "dict": "dict.arrow", "parquet": "parquet", "trec": "trec"}


@dataclass
class Entry:
    """A tool in the comparison, its worker, and what was measured."""

    name: str
    tool: Tool
    form: str = ""
    files: dict[str, str] = field(default_factory=dict)
    absent: str = ""
    version: str = ""
    process: subprocess.Popen[str] | None = None
    means: dict[str, float] = field(default_factory=dict)
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def start(self, trec_eval: str) -> None:
        """Start the worker and wait until its tool is imported."""
        command = [sys.executable, str(HERE / "tools.py"), self.name, "--trec-eval", trec_eval]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.version = self._answer().get("version", "")

    def run(self, timed: bool) -> None:
        """One job."""
        assert self.process is not None
        stdin = cast("IO[str]", self.process.stdin)
        stdin.write(json.dumps(self.files) + "\n")
        stdin.flush()
        answer = self._answer()
        if "error" in answer:
            self.absent = FAILED
            tell(f"{self.name}: {answer['error']}")
            return
        self.means = answer["means"]
        if timed:
            self.wall.append(answer["wall"])
            self.cpu.append(answer["cpu"])

    def _answer(self) -> dict[str, Any]:
        assert self.process is not None
        line = cast("IO[str]", self.process.stdout).readline()
        return json.loads(line) if line else {"error": "its process ended"}

    def stop(self) -> None:
        """End the worker."""
        if self.process is not None:
            self.process.communicate()


def choose_files(entry: Entry, folder: Path, labels: str, form: str) -> None:
    """The files that a tool reads, the best first; ragcore reads what was asked for."""
    forms = [form] if entry.name.startswith("ragcore") else entry.tool.reads
    for one in forms:
        end = ENDINGS[one]
        run, qrels = folder / f"run0.{end}", folder / f"qrels.{labels}.{end}"
        if run.exists() and qrels.exists():
            entry.form, entry.files = one, {"run": str(run), "qrels": str(qrels)}
            return
    entry.absent = f"no {' or '.join(forms)} files in this workload"


def compare(folder: Path, options: argparse.Namespace) -> list[Entry]:
    """Warm every tool up, then let them take turns."""
    entries = [Entry(name, make_tool(name, options.trec_eval)) for name in options.tools]
    for entry in entries:
        entry.absent = entry.tool.missing()
        if not entry.absent:
            choose_files(entry, folder, options.labels, options.format)
        if entry.absent:
            continue
        entry.start(options.trec_eval)
        entry.run(timed=False)
        tell(f"{entry.name} {entry.version}: {entry.absent or 'warm'}")
    try:
        for turn in range(options.repeats):
            for entry in entries:
                slow = options.slow_repeats
                if entry.absent or (slow and turn >= slow and entry.wall[0] > 1.0):
                    continue
                entry.run(timed=True)
            tell(f"turn {turn + 1} of {options.repeats}")
    finally:
        for entry in entries:
            entry.stop()
    return entries


def agreement(entries: list[Entry]) -> tuple[list[str], bool]:
    """Who ran, and how far apart the means are; False if equal definitions disagree."""
    ran = [e for e in entries if e.means]
    if not ran:
        return ["- no tool ran"], False
    base = min(ran, key=lambda e: (not e.tool.exact, e.tool.tolerance))  # the first of the best
    lines, fine = [], not any(e.absent == FAILED for e in entries)
    versions = [f"{e.name} {e.version}" for e in ran if e.version]
    near: dict[float, list[str]] = {}
    for entry in ran:
        if entry is base:
            continue
        apart = {m: abs(entry.means[m] - base.means[m]) for m in MEASURES}
        far = {m: d for m, d in apart.items() if not d <= entry.tool.tolerance}
        if not far:
            near.setdefault(entry.tool.tolerance, []).append(entry.name)
            continue
        fine &= not entry.tool.exact
        why = "DISAGREES" if entry.tool.exact else "orders ties its own way"
        what = ", ".join(f"{m} by {d:.1e}" for m, d in far.items())
        lines.append(f"- {entry.name} {why}: {what}")
    same = "; ".join(f"within {limit:g}: {', '.join(names)}" for limit, names in near.items())
    agree = f"- all means agree with {base.name} {same}"
    return [f"- versions: {', '.join(versions)}", *([agree] if same else []), *lines], fine


def ratios(entry: Entry, base: Entry | None) -> str:
    """Wall time over another's, turn by turn."""
    if base is None or entry is base:
        return "1" if base else ""
    return spread([a / b for a, b in zip(entry.wall, base.wall, strict=False)])


HEAD = ["tool", "reads", "wall ms", "CPU ms", "wall / ragcore-1", "CPU / ragcore-1",
        "wall / ragcore-2"]  # fmt: skip


def rows(entries: list[Entry]) -> list[list[str]]:
    """One row a tool, as text."""
    by_name = {e.name: e for e in entries if e.wall}
    one, two = by_name.get("ragcore-1"), by_name.get("ragcore-2")
    out = []
    for entry in entries:
        if not entry.wall:
            out.append([entry.name, entry.absent])
            continue
        cpu = statistics.median(entry.cpu)
        own = number(cpu / statistics.median(one.cpu)) if one else ""
        wall = spread([1e3 * w for w in entry.wall])
        row = [entry.name, entry.form, wall, number(1e3 * cpu)]
        out.append([*row, ratios(entry, one), own, ratios(entry, two)])
    return out


def find_workload(options: argparse.Namespace) -> Path:
    """The folder of the workload; made if there is none."""
    place = options.workloads or Path(tempfile.gettempdir()) / "ragcore-workloads"
    folder = place / options.size
    if not (folder / "run0.arrow").exists():
        tell(f"making workload {options.size}")
        maker = HERE.parent / "workload.py"
        command = [sys.executable, maker, "--size", options.size, "--out", place]
        subprocess.run(command, check=True, stdout=sys.stderr)
    return folder


def arguments() -> argparse.Namespace:
    """What the user asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", choices=("XS", "S", "M", "L"), default="S")
    parser.add_argument("--labels", choices=("sparse", "pooled"), default="sparse")
    parser.add_argument("--repeats", type=int, default=7, help="timed jobs of each tool")
    parser.add_argument("--slow-repeats", type=int, default=0, metavar="N",
                        help="only N jobs of a tool that takes above a second")  # fmt: skip
    parser.add_argument("--tools", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--format", choices=ENDINGS, default="arrow", help="what ragcore reads")
    parser.add_argument("--workloads", type=Path, help="folder of S/, M/, L/; else they are made")
    parser.add_argument("--shuffled", type=Path, metavar="DIR",
                        help="also the workload in DIR, rows in random order")  # fmt: skip
    parser.add_argument("--trec-eval", default="", metavar="PATH", help="the trec_eval program")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--update", type=Path, metavar="FILE",
                        help="put the result between its marks in a Markdown file")  # fmt: skip
    options = parser.parse_args()
    options.markdown |= options.update is not None
    return options


def main() -> int:
    """Compare; exit status 1, and no file changed, if a tool failed or means disagree."""
    options = arguments()
    folders = {"": find_workload(options)}
    if options.shuffled:
        folders[" shuffled"] = options.shuffled / options.size
    status = 0
    for suffix, folder in folders.items():
        entries = compare(folder, options)
        notes, fine = agreement(entries)
        status |= not fine
        key = f"scoring {options.size} {options.labels} {options.format}{suffix}"
        lines = table(HEAD, rows(entries), options.markdown)
        publish(key, [machine(), "", *lines, "", *notes], options.update if fine else None)
    return status


if __name__ == "__main__":
    sys.exit(main())
