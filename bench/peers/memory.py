"""Peak memory of one scoring job with each tool, every one in fresh processes.

python bench/peers/memory.py --size M --labels sparse --workloads DIR

Four processes a tool: one that only imports, one that also does a tiny job (which loads compiled
code and starts threads), and the job itself, three times, of which the median. Two numbers of
each: *resident*, the high-water mark that the kernel keeps (ru_maxrss), which counts the pages of
a memory-mapped input as they are touched although they can be dropped at any time; and *own*,
anonymous memory alone (RssAnon), which is what a job really takes from others. The second is
sampled from outside every millisecond, so that a shorter peak can be missed. Linux only.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from report import machine, publish, table, tell
from scoring import ENDINGS, HERE, Entry, choose_files, find_workload
from tools import NAMES, TrecEval, make_tool

HEAD = ["tool", "reads", "imports", "tiny job", "job", "job - imports", "own: imports",
        "own: tiny job", "own: job", "own: job - imports"]  # fmt: skip


def memory(pid: int) -> tuple[float, float]:
    """MiB of a process: resident at its peak so far, and own now; 0 once it has gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0, 0.0
    fields = dict(line.split(":", 1) for line in lines)
    resident, own = (int(fields.get(name, "0 kB").split()[0]) for name in ("VmHWM", "RssAnon"))
    return resident / 1024, own / 1024


def peak(command: list[str]) -> tuple[float, float]:
    """MiB at the peak of one process: resident, and own."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        peaks = 0.0, 0.0
        while process.poll() is None:
            now = memory(process.pid)
            peaks = max(peaks[0], now[0]), max(peaks[1], now[1])
            time.sleep(0.001)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return peaks


def measure(entry: Entry, tiny: Entry, repeats: int) -> list[str]:
    """A row of the table."""
    start = [sys.executable, str(HERE / "tools.py"), entry.name]
    commands = [
        [*start, "--import-only"],
        [*start, "--once", *tiny.files.values()],
        [*start, "--once", *entry.files.values()],
    ]
    if isinstance(entry.tool, TrecEval):  # no Python around it
        jobs = [entry.tool.command(one.files) for one in (tiny, entry)]
        commands = [[entry.tool.argument, "--version"], *jobs]
    peak(commands[1])  # what is compiled now is not compiled under the meter
    peaks = [peak(commands[0]), peak(commands[1])]
    found = [peak(commands[2]) for _ in range(repeats)]
    peaks.append((statistics.median(f[0] for f in found), statistics.median(f[1] for f in found)))
    cells = [entry.name, entry.form]
    for which in (0, 1):
        numbers = [p[which] for p in peaks]
        cells += [f"{n:.0f}" for n in (*numbers, numbers[2] - numbers[0])]
    return cells


def main() -> None:
    """Print a Markdown table, and put it in a file if asked to."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", choices=("S", "M", "L"), default="M")
    parser.add_argument("--labels", choices=("sparse", "pooled"), default="sparse")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tools", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--format", choices=ENDINGS, default="arrow", help="what ragcore reads")
    parser.add_argument("--workloads", type=Path, help="folder of S/, M/, L/; else they are made")
    parser.add_argument("--trec-eval", default="", metavar="PATH", help="the trec_eval program")
    parser.add_argument("--update", type=Path, metavar="FILE",
                        help="put the result between its marks in a Markdown file")  # fmt: skip
    options = parser.parse_args()
    folder = find_workload(options)
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        maker = [sys.executable, HERE.parent / "workload.py", "--size", "XS", "--out", scratch]
        subprocess.run(maker, check=True, stdout=sys.stderr)
        for name in options.tools:
            entries = []
            for place in (folder, Path(scratch) / "XS"):
                entry = Entry(name, make_tool(name, options.trec_eval))
                entry.absent = entry.tool.missing()
                if not entry.absent:
                    choose_files(entry, place, options.labels, options.format)
                entries.append(entry)
            if absent := entries[0].absent:
                rows.append([name, absent])
            else:
                rows.append(measure(*entries, options.repeats))
            tell(" ".join(rows[-1]))
    lines = [f"{machine()}; MiB", "", *table(HEAD, rows, True)]
    publish(f"memory {options.size} {options.labels} {options.format}", lines, options.update)


if __name__ == "__main__":
    main()
