"""Claim measures from stored verdicts: our kernels, polars, and RAGChecker's own code.

python bench/peers/claims.py --cases 1000000 --ragchecker PATH/TO/RAGChecker/ragchecker

All take verdicts that are already in memory in the form that each likes best: arrays of int8, a
table of cells, Python lists of words. They work out the eleven measures of RAGChecker for every
case, and their means, which must agree. A slow tool does the first cases only, and its time is
scaled up in proportion; the column says so. The last rows are the whole way from files through
`ragcore.score`, every claim measure, summary without intervals.

RAGChecker is read from a folder with its ``computation.py``, ``container.py`` and ``metrics.py``
(it needs dataclasses-json), so that its judges need not be installed.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
import time
import tracemalloc
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from claim_data import World, draw, write
from report import machine, number, publish, table, tell

from ragcore.threads import run_split

NAMES = (
    "precision", "recall", "f1", "claim_recall", "context_precision", "context_utilization",
    "noise_sensitivity_in_relevant", "noise_sensitivity_in_irrelevant", "hallucination",
    "self_knowledge", "faithfulness",
)  # fmt: skip
WHOLE = (
    "claims.precision", "claims.recall", "claims.f1", "claims.context_recall", "context.precision",
    "context.utilization", "noise.relevant", "noise.irrelevant", "hallucination", "self_knowledge",
    "faithfulness", "grounded.*", "claims.unsupported", "completeness", "nuggets.all",
)  # fmt: skip
BLOCK = 20_000  # cases: the counts of a block stay in the cache
Means = dict[str, float]


def kernels(world: World, threads: int) -> Means:
    """Values of every case, block by block, and their means, from the arrays."""
    from ragcore_kernels import claims as kernel
    from ragcore_kernels import grounded

    n, a, y, c = world.n, world.claims, world.references, world.chunks
    tally: Any = kernel.tally
    steps = [np.arange(n + 1) * width for width in (a, y, c, a * c, y * c)]
    useful, values = np.empty(n * c, np.int8), np.empty((len(NAMES), n))
    shares = {
        "precision": (kernel.CORRECT, a), "recall": (kernel.COVERED, y),
        "claim_recall": (kernel.RECALLED, y), "context_precision": (kernel.USEFUL, c),
        "noise_sensitivity_in_relevant": (kernel.NOISE_RELEVANT, a),
        "noise_sensitivity_in_irrelevant": (kernel.NOISE_IRRELEVANT, a),
        "hallucination": (kernel.HALLUCINATED, a), "self_knowledge": (kernel.SELF_KNOWLEDGE, a),
        "faithfulness": (kernel.FAITHFUL, a),
    }  # fmt: skip

    def block(low: int, high: int) -> None:
        size = high - low
        parts = [step[low : high + 1] for step in steps]
        counts = np.empty((size, kernel.FIELDS), np.int32)
        tally(
            0, size, *parts, world.correct, world.covered,
            world.by_answer, world.by_reference, useful, counts,
        )  # fmt: skip
        for name, (field, below) in shares.items():
            np.divide(counts[:, field], below, out=values[NAMES.index(name), low:high])
        used, recalled = counts[:, kernel.USED], counts[:, kernel.RECALLED]
        values[NAMES.index("context_utilization"), low:high] = used / np.maximum(recalled, 1)
        over, under = np.empty(size, np.int64), np.empty(size, np.int64)
        right, said = (counts[:, f].astype(np.int64) for f in (kernel.CORRECT, kernel.COVERED))
        grounded.harmonic(0, size, right, np.full(size, a), said, np.full(size, y), over, under)
        np.divide(over, under, out=values[NAMES.index("f1"), low:high])

    def work(begin: int, end: int) -> None:
        for low in range(begin, end, BLOCK):
            block(low, min(low + BLOCK, end))

    run_split(work, n, threads)
    return dict(zip(NAMES, values.mean(axis=1).tolist(), strict=True))


def cells(world: World) -> Any:
    """The verdicts as polars tables: claims, and one row a cell of the matrices."""
    import polars as pl

    n, a, y, c = world.n, world.claims, world.references, world.chunks
    case = np.arange(n, dtype=np.int32)

    def matrix(values: Any, rows: int) -> Any:
        return pl.DataFrame({
            "case": np.repeat(case, rows * c),
            "claim": np.tile(np.repeat(np.arange(rows, dtype=np.int16), c), n),
            "chunk": np.tile(np.arange(c, dtype=np.int16), n * rows), "yes": values == 0,
        })  # fmt: skip

    def claims(values: Any, rows: int) -> Any:
        return pl.DataFrame({
            "case": np.repeat(case, rows), "claim": np.tile(np.arange(rows, dtype=np.int16), n),
            "held": values == 0,
        })  # fmt: skip

    return (claims(world.correct, a), claims(world.covered, y), matrix(world.by_answer, a),
            matrix(world.by_reference, y))  # fmt: skip


def polars(given: Any) -> Means:
    """The measures as group-bys and joins."""
    import polars as pl

    correct, covered, by_answer, by_reference = (frame.lazy() for frame in given)
    yes, held, recalled, useful = (pl.col(n) for n in ("yes", "held", "recalled", "useful"))
    found = by_reference.group_by("case", "claim").agg(recalled=yes.any())
    chunks = by_reference.group_by("case", "chunk").agg(useful=yes.any())
    right = (
        by_answer.join(chunks, on=["case", "chunk"])
        .group_by("case", "claim")
        .agg(faithful=yes.any(), relevant=(yes & useful).any())
        .join(correct, on=["case", "claim"])
    )
    faithful, relevant = pl.col("faithful"), pl.col("relevant")
    answers = right.group_by("case").agg(
        precision=held.mean(), faithfulness=faithful.mean(),
        noise_sensitivity_in_relevant=(relevant & ~held).mean(),
        noise_sensitivity_in_irrelevant=(faithful & ~relevant & ~held).mean(),
        hallucination=(~faithful & ~held).mean(), self_knowledge=(~faithful & held).mean(),
    )  # fmt: skip
    references = (
        found.join(covered, on=["case", "claim"])
        .group_by("case")
        .agg(
            recall=held.mean(), claim_recall=recalled.mean(),
            context_utilization=(recalled & held).sum() / recalled.sum(),
        )
    )  # fmt: skip
    p, r = pl.col("precision"), pl.col("recall")
    values = (
        answers.join(references, on="case")
        .join(chunks.group_by("case").agg(context_precision=useful.mean()), on="case")
        .with_columns(
            pl.col("context_utilization").fill_nan(0),
            f1=pl.when(p + r > 0).then(2 * p * r / (p + r)).otherwise(0.0),
        )
        .collect()
    )
    return dict(zip(NAMES, values.select(pl.col(NAMES).mean()).row(0), strict=True))


def ragchecker_of(folder: Path) -> Any:
    """Its module ``computation``, without the package around it."""
    package = types.ModuleType("ragchecker_files")
    package.__path__ = [str(folder)]
    sys.modules["ragchecker_files"] = package
    return importlib.import_module("ragchecker_files.computation")


def results_of(world: World, module: Any) -> list[Any]:
    """The verdicts as RAGChecker keeps them."""
    container = sys.modules["ragchecker_files.container"]
    words = np.array(["Entailment", "Neutral", "Neutral", "Contradiction"], object)
    n, a, y, c = world.n, world.claims, world.references, world.chunks
    parts = [
        words[world.correct].reshape(n, a).tolist(), words[world.covered].reshape(n, y).tolist(),
        words[world.by_answer].reshape(n, a, c).tolist(),
        words[world.by_reference].reshape(n, y, c).tolist(),
    ]  # fmt: skip
    fields = ("answer2response", "response2answer", "retrieved2response", "retrieved2answer")
    return [
        container.RAGResult(str(i), "", "", "", **dict(zip(fields, each, strict=True)))
        for i, each in enumerate(zip(*parts, strict=True))
    ]


def ragchecker(given: Any, module: Any) -> Means:
    """All of its measures of every result, and their means."""
    for result in given:
        for name in NAMES:
            module.METRIC_FUNC_MAP[name](result)
    return {name: float(np.mean([r.metrics[name] for r in given])) for name in NAMES}


def timed(job: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Least seconds of several turns, and what the last one gave."""
    best, found = np.inf, None
    for _ in range(repeats):
        start = time.perf_counter()
        found = job()
        best = min(best, time.perf_counter() - start)
    return float(best), found


def peak(job: Callable[[], Any]) -> int:
    """Bytes that a job adds at its peak."""
    tracemalloc.start()
    job()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def from_files(world: World, form: str) -> Callable[[], Any]:
    """`ragcore.score` on files in a temporary folder, all claim measures."""
    import ragcore

    folder = Path(tempfile.mkdtemp(prefix="ragcore-claims-"))
    write(world, folder)
    return lambda: ragcore.score(
        str(folder / "run.arrow"), suite=str(folder / "suite"), measures=list(WHOLE),
        judgments=str(folder / f"{form}.arrow"),
    )  # fmt: skip


def compare(options: argparse.Namespace) -> tuple[list[str], bool]:
    """Lines of a table, and whether all agree."""
    world = draw(options.cases, options.claims, options.claims, options.chunks, options.seed)
    kernels(world.first(10), 1)
    rows: list[tuple[str, int, float]] = []
    wanted: dict[int, Means] = {}
    fine = True

    def add(name: str, n: int, job: Callable[[], Any], repeats: int) -> None:
        nonlocal fine
        seconds, found = timed(job, repeats)
        rows.append((name, n, seconds))
        if isinstance(found, dict):
            ours = wanted.setdefault(n, kernels(world.first(n), 1))
            fine &= all(abs(found[key] - ours[key]) < 1e-9 for key in NAMES)
        tell(f"{name}: {n:,} cases in {seconds:.3f} s")

    for threads in (1, 2):
        add(f"kernels, {threads} thread{'s' * (threads > 1)}", options.cases,
            lambda threads=threads: kernels(world, threads), options.repeats)  # fmt: skip
    added = peak(lambda: kernels(world, 1))
    some = world.first(min(options.cases, options.polars))
    tables = cells(some)
    add("polars, all threads", some.n, lambda: polars(tables), options.repeats)
    if options.ragchecker is not None:
        few = world.first(min(options.cases, options.slow))
        module = ragchecker_of(options.ragchecker)
        runs = [results_of(few, module) for _ in range(options.repeats)]  # it keeps what it found
        add("RAGChecker", few.n, lambda: ragchecker(runs.pop(), module), options.repeats)
    part = world.first(min(options.cases, options.files))
    for form in ("packed", "plain"):
        job = from_files(part, form)
        job()
        add(f"ragcore.score, {form} judgments", part.n, job, 1)
    return lines_of(world, rows, added, fine), fine


def lines_of(world: World, rows: list[tuple[str, int, float]], added: int, fine: bool) -> list[str]:
    """The table, and what there is to say of it."""
    million = [seconds / n * 1e6 for _, n, seconds in rows]
    base = million[1]
    body = [
        [name, f"{n:,}", number(seconds), number(scaled) + ("" if n == world.n else " (scaled)"),
         number(scaled / base)]
        for (name, n, seconds), scaled in zip(rows, million, strict=True)
    ]  # fmt: skip
    head = ["tool", "cases", "s", "s a million cases", "ratio"]
    shape = f"{world.n:,} cases x {world.claims} claims x {world.chunks} chunks"
    memory = (
        f"{world.bytes / 1e6:,.0f} MB of verdicts; the kernels add {added / 1e6:,.0f} MB, "
        f"{8e-6 * len(NAMES) * world.n:,.0f} of which are the values"
    )
    agreed = "means agree to 1e-9" if fine else "MEANS DISAGREE"
    return [*table(head, body, True), "", f"- {shape}: {memory}", f"- {agreed}"]


def main() -> int:
    """Compare; exit status 1 if tools disagree."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=1_000_000)
    parser.add_argument("--claims", type=int, default=5)
    parser.add_argument("--chunks", type=int, default=8)
    parser.add_argument("--polars", type=int, default=100_000, help="cases for polars")
    parser.add_argument("--slow", type=int, default=2_000, help="cases for RAGChecker")
    parser.add_argument("--files", type=int, default=100_000, help="cases from files")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ragchecker", type=Path, metavar="DIR", help="folder of its modules")
    parser.add_argument("--update", type=Path, metavar="FILE",
                        help="put the result between its marks in a Markdown file")  # fmt: skip
    options = parser.parse_args()
    lines, fine = compare(options)
    publish("claims", [machine(), "", *lines], options.update if fine else None)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
