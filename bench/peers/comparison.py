"""Time a whole comparison of two runs: files in, every interval and p-value out.

python bench/peers/comparison.py --cases 10000
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from report import machine, number, publish, spread, table, tell
from scipy.stats import bootstrap, permutation_test

from ragcore import compare

MEASURES = tuple(
    f"{name}@{k}" for name in ("nDCG", "R", "P", "Success", "RR", "AP") for k in (1, 3, 5, 10, 20)
)
DEPTH, SLICES = 100, 20


def write(path: Path, columns: dict[str, object]) -> None:
    """A table as an Arrow file."""
    made = pa.table(columns)
    with pa.ipc.new_file(str(path), made.schema) as writer:
        writer.write_table(made, max_chunksize=65_536)


def world(folder: Path, n: int, seed: int = 1) -> None:
    """A suite of n cases in 20 slices with 1 to 3 relevant documents, and two runs that agree on
    most cases.
    """
    rng = np.random.default_rng(seed)
    wanted = [[f"r{q}_{j}" for j in range(1 + q % 3)] for q in range(n)]
    write(folder / "cases.arrow", {
        "case_id": [f"q{q}" for q in range(n)], "topic": [f"t{q % SLICES}" for q in range(n)],
        "evidence": [[{"doc_id": d, "relevance": j + 1} for j, d in enumerate(docs)]
                     for docs in wanted],
    })  # fmt: skip
    (folder / "suite.toml").write_text('name = "world"\n')
    places = [[(d, int(min(rng.geometric(0.15), DEPTH)) - 1) for d in docs] for docs in wanted]
    for name in ("before", "after"):
        ids: list[str] = []
        for q, found in enumerate(places):
            row = [f"x{q}_{d}" for d in range(DEPTH)]
            moved = name == "after" and rng.random() < 0.4
            for document, place in found:
                row[int(rng.integers(0, place + 2)) if moved else place] = document
            ids += row
        write(folder / f"{name}.arrow", {
            "case_id": np.repeat([f"q{q}" for q in range(n)], DEPTH), "id": ids,
            "score": np.tile(np.arange(DEPTH, 0, -1.0), n),
        })  # fmt: skip


def main() -> None:
    """Print the table; with --update also put it into a Markdown file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--update", type=Path, help="Markdown file whose table is replaced")
    options = parser.parse_args()
    n = options.cases
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tell(f"writing {n} cases")
        world(folder, n)

        def job(threads: int) -> list[dict[str, object]]:
            found = compare(
                folder / "before.arrow", folder / "after.arrow", suite=folder, measures=MEASURES,
                by=["topic"], threads=threads,
            )  # fmt: skip
            return found.rows()

        job(2)
        times: dict[int, tuple[list[float], list[float]]] = {1: ([], []), 2: ([], [])}
        for _ in range(options.repeats):
            for threads, (wall, processor) in times.items():
                start, busy = time.perf_counter(), time.process_time()
                rows = job(threads)
                wall.append(1e3 * (time.perf_counter() - start))
                processor.append(1e3 * (time.process_time() - busy))
        compared = [row for row in rows if row["baseline"]]
        exact = sum(row["delta_method"] == "exact" for row in compared)
        head = ["ragcore.compare", "wall ms", "CPU ms"]
        body = [
            [f"{threads} thread(s)", spread(wall), spread(processor)]
            for threads, (wall, processor) in times.items()
        ]
        tell("scipy, one cell")
        values = np.random.default_rng(0).choice([-1.0, 0.0, 1.0], n, p=[0.1, 0.78, 0.12])
        start = time.perf_counter()
        options_of = {"n_resamples": 10_000, "batch": 1_000}
        bootstrap((values,), np.mean, method="percentile", **options_of)
        permutation_test((values,), np.mean, permutation_type="samples", **options_of)
        single = 1e3 * (time.perf_counter() - start)
        body.append([
            "scipy, 10,000 resamples: interval and p of one measure over all cases",
            number(single), "",
        ])  # fmt: skip
        lines = [
            machine(), "",
            f"{n:,} cases, {len(MEASURES)} measures, {SLICES} slices and the whole: "
            f"{len(compared)} differences, {exact} of their intervals without any bound, the rest "
            f"within {max_bound(compared)}; {len(rows)} intervals of means", "",
            *table(head, body, True),
        ]  # fmt: skip
        publish("comparison", lines, options.update)


def max_bound(rows: list[dict[str, object]]) -> str:
    """The widest bound that any interval is printed with."""
    bounds = [str(r["delta_method"]).partition("±")[2] for r in rows]
    return max((b for b in bounds if b), key=float, default="0")


if __name__ == "__main__":
    main()
