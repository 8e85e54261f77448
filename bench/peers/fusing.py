"""Fuse runs by reciprocal ranks with every tool, side by side.

python bench/peers/fusing.py --size S --runs 2
python bench/peers/fusing.py --size M --runs 5 --tools ragcore-1 ragcore-2 duckdb

A job goes from Arrow files (in the page cache) to the top 1,000 of every query, in order, with
scores. Each tool lives in a process of its own, where imports and a first, untimed job come before;
then the tools take turns, and the median of turns counts. Rows and the sum of all scores are
compared before a time is shown.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, cast

from report import machine, number, publish, spread, table, tell

DEPTH, K = 1_000, 60
ROOT = Path(__file__).resolve().parents[2]

Job = Callable[[list[str]], Any]
Digest = Callable[[Any], tuple[int, float]]
"""What a tool gave -> rows, and the sum of their scores."""


def ragcore(threads: int) -> tuple[Job, Digest]:
    """The verb, without a copy of its inputs in the result."""
    import numpy as np

    from ragcore.fuse import fuse

    def job(runs: list[str]) -> Any:
        return fuse(runs, depth=DEPTH, stages=False, overlap_depth=0, threads=threads).table

    def digest(result: Any) -> tuple[int, float]:
        scores = [chunk.values.field("score").to_numpy() for chunk in result["ranked"].chunks]
        return sum(map(len, scores)), float(sum(map(np.sum, scores)))

    return job, digest


def polars() -> tuple[Job, Digest]:
    """Ranks by a sort, sums by a group, the top by a second sort; all threads."""
    import polars as pl

    def job(runs: list[str]) -> Any:
        parts = [
            pl.scan_ipc(path)
            .sort("query_id", "score", "doc_id", descending=[False, True, True])
            .select("query_id", "doc_id", pl.int_range(1, pl.len() + 1).over("query_id").alias("r"))
            for path in runs
        ]
        return (
            pl.concat(parts)
            .group_by("query_id", "doc_id")
            .agg((1.0 / (K + pl.col("r"))).sum().alias("score"), pl.col("r").min().alias("best"))
            .sort("query_id", "score", "best", "doc_id", descending=[False, True, False, True])
            .group_by("query_id", maintain_order=True)
            .head(DEPTH)
            .collect()
        )

    def digest(result: Any) -> tuple[int, float]:
        return len(result), float(result["score"].sum())

    return job, digest


SQL = """
with ranked as ({ranked}),
fused as (
    select query_id, doc_id, sum(1.0 / ({k} + r)) as score, min(r) as best
    from ranked group by all)
select * from fused
qualify row_number() over (
    partition by query_id order by score desc, best, doc_id desc) <= {depth}
order by query_id, score desc, best, doc_id desc"""


def duckdb() -> tuple[Job, Digest]:
    """One SQL statement over Arrow tables; all threads."""
    import duckdb as base
    import pyarrow as pa
    import pyarrow.compute as pc

    def job(runs: list[str]) -> Any:
        with base.connect() as connection:
            for i, path in enumerate(runs):
                opened = pa.ipc.open_file(pa.memory_map(path)).read_all()
                connection.register(f"run{i}", opened)
            ranked = " union all ".join(
                "select query_id, doc_id, row_number() over (partition by query_id order by "
                f"score desc, doc_id desc) as r from run{i}"
                for i in range(len(runs))
            )
            sql = SQL.format(ranked=ranked, k=K, depth=DEPTH)
            return connection.sql(sql).to_arrow_table()

    def digest(result: Any) -> tuple[int, float]:
        return len(result), pc.sum(result["score"]).as_py()

    return job, digest


def ranx() -> tuple[Job, Digest]:
    """Runs from dicts; it cuts nothing and misses no query, so both are done around it."""
    import pyarrow as pa
    import ranx as peer

    def read(path: str) -> dict[str, dict[str, float]]:
        rows = pa.ipc.open_file(pa.memory_map(path)).read_all()
        out: dict[str, dict[str, float]] = {}
        columns = (rows[name].to_pylist() for name in ("query_id", "doc_id", "score"))
        for query, doc, score in zip(*columns, strict=True):
            out.setdefault(query, {})[doc] = score
        return out

    def job(runs: list[str]) -> Any:
        read_runs = [read(path) for path in runs]
        queries = {query for run in read_runs for query in run}
        for run in read_runs:
            for query in queries - set(run):
                run[query] = {}
        objects = [peer.Run(run) for run in read_runs]
        return peer.fuse(objects, method="rrf", params={"k": K}).to_dict()

    def digest(result: Any) -> tuple[int, float]:
        tops = [sorted(docs.values(), reverse=True)[:DEPTH] for docs in result.values()]
        return sum(map(len, tops)), sum(map(sum, tops))

    return job, digest


TOOLS: dict[str, Callable[[], tuple[Job, Digest]]] = {
    "ragcore-1": lambda: ragcore(1),
    "ragcore-2": lambda: ragcore(2),
    "polars": polars,
    "duckdb": duckdb,
    "ranx": ranx,
}


def serve(name: str, runs: list[str]) -> None:
    """Hold one tool: a line with a time for each line read."""
    answers = sys.stdout
    sys.stdout = sys.stderr  # whatever a tool prints
    try:
        job, digest = TOOLS[name]()
    except ImportError:
        answers.write(json.dumps({"error": "not installed"}) + "\n")
        answers.flush()
        return
    for _ in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        result = job(runs)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        rows, total = digest(result)
        del result
        answers.write(json.dumps({"wall": wall, "cpu": cpu, "rows": rows, "sum": total}) + "\n")
        answers.flush()


class Worker:
    """One tool in a process of its own, and what was measured."""

    def __init__(self, name: str, runs: list[str]) -> None:
        self.name, self.absent = name, ""
        self.wall: list[float] = []
        self.cpu: list[float] = []
        self.digest: tuple[int, float] = (0, 0.0)
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve", name, *runs], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, timed: bool) -> None:
        """One job."""
        stdin = cast("IO[str]", self.process.stdin)
        try:
            stdin.write("go\n")
            stdin.flush()
        except BrokenPipeError:
            pass
        line = cast("IO[str]", self.process.stdout).readline()
        answer: dict[str, Any] = json.loads(line) if line else {"error": "failed"}
        if "error" in answer:
            self.absent = answer["error"]
            return
        self.digest = (answer["rows"], answer["sum"])
        if timed:
            self.wall.append(answer["wall"])
            self.cpu.append(answer["cpu"])


def compare(runs: list[str], names: list[str], repeats: int) -> tuple[list[str], bool]:
    """Lines of a table, and whether all who ran agree."""
    workers = [Worker(name, runs) for name in names]
    for worker in workers:
        worker.run(timed=False)
        tell(f"{worker.name}: {worker.absent or 'warm'}")
    for turn in range(repeats):
        for worker in workers:
            if not worker.absent:
                worker.run(timed=True)
        tell(f"turn {turn + 1} of {repeats}")
    for worker in workers:
        worker.process.communicate()
    ran = [worker for worker in workers if worker.wall]
    base = ran[0]
    fine = all(
        w.digest[0] == base.digest[0] and abs(w.digest[1] / base.digest[1] - 1) < 1e-9 for w in ran
    )
    body = [
        [w.name, spread([1e3 * s for s in w.wall]), number(1e3 * statistics.median(w.cpu)),
         spread([a / b for a, b in zip(w.wall, base.wall, strict=False)]), f"{w.digest[0]:,}"]
        if w.wall else [w.name, w.absent]
        for w in workers
    ]  # fmt: skip
    head = ["tool", "wall ms", "CPU ms", f"wall / {base.name}", "rows"]
    note = "rows and sums of scores agree" if fine else "DISAGREE: " + ", ".join(
        f"{w.name} {w.digest}" for w in ran)  # fmt: skip
    return [*table(head, body, True), "", f"- {note}"], fine


def main() -> int:
    """Compare; exit status 1 if tools disagree."""
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2], sys.argv[3:])
        return 0
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", choices=("XS", "S", "M"), default="S")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5, help="timed jobs of each tool")
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=list(TOOLS))
    parser.add_argument("--workloads", type=Path, help="folder of S/, M/; else they are made")
    parser.add_argument("--update", type=Path, metavar="FILE",
                        help="put the result between its marks in a Markdown file")  # fmt: skip
    options = parser.parse_args()
    place = options.workloads or Path(tempfile.gettempdir()) / "ragcore-fusion-workloads"
    folder = place / options.size
    if not (folder / f"run{options.runs - 1}.arrow").exists():
        command = [sys.executable, "-m", "bench.many_runs", "--size", options.size, "--runs",
                   str(options.runs), "--out", str(place)]  # fmt: skip
        subprocess.run(command, check=True, stdout=sys.stderr, cwd=ROOT)
    runs = [str(folder / f"run{i}.arrow") for i in range(options.runs)]
    lines, fine = compare(runs, options.tools, options.repeats)
    key = f"fusing {options.size} {options.runs}"
    publish(key, [machine(), "", *lines], options.update if fine else None)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
