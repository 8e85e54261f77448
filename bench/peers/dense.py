"""Time exact nearest neighbours beside faiss, hnswlib and plain NumPy, in one run.

python bench/peers/dense.py --n 100000 --graph

Every method has one thread. A method takes turns with the others; the best of its turns counts, as
the work is always the same. The process starts itself anew with BLAS held to one thread and to its
own choice of kernels.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import faiss
import hnswlib
import numpy as np
from report import machine, publish, table, tell

from ragcore_kernels.knn import ExactIndex

BLAS = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
SLOWS = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")

Method = Callable[[np.ndarray, int], np.ndarray]
"""Queries and k to rows, (m, k)."""


def clustered(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Unit vectors around a hundredth as many centres."""
    centres = rng.standard_normal((max(n // 100, 1), d), np.float32)
    x = centres[rng.integers(0, len(centres), n)]
    x += np.float32(0.8) * rng.standard_normal((n, d), np.float32)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def ragcore(x: np.ndarray, method: str) -> Method:
    """Ours."""
    index = ExactIndex(x, "ip", method)
    return lambda q, k: index.search(q, k).rows


def flat(x: np.ndarray) -> Method:
    """faiss IndexFlatIP."""
    faiss.omp_set_num_threads(1)
    index = faiss.IndexFlatIP(x.shape[1])
    index.add(x)
    return lambda q, k: index.search(q, k)[1]


def product(x: np.ndarray) -> Method:
    """Nothing but the product: no row is found."""

    def run(q: np.ndarray, k: int) -> np.ndarray:
        for at in range(0, len(q), 64):
            x @ q[at : at + 64].T
        return np.full((len(q), k), -1)

    return run


def partitioned(x: np.ndarray) -> Method:
    """Product, argpartition and a sort of what is left."""

    def run(q: np.ndarray, k: int) -> np.ndarray:
        found = []
        for at in range(0, len(q), 64):
            scores = q[at : at + 64] @ x.T
            top = np.argpartition(scores, -k, axis=1)[:, -k:]
            order = np.argsort(-np.take_along_axis(scores, top, 1), axis=1, kind="stable")
            found.append(np.take_along_axis(top, order, 1))
        return np.concatenate(found)

    return run


def brute(x: np.ndarray) -> Method:
    """hnswlib BFIndex; a batch is a loop there."""
    index = hnswlib.BFIndex("ip", x.shape[1])
    index.init_index(len(x))
    index.add_items(x)
    index.set_num_threads(1)
    return lambda q, k: index.knn_query(q, k)[0].astype(np.int64)


def graphs(x: np.ndarray, efs: tuple[int, ...]) -> dict[str, Method]:
    """hnswlib HNSW, M 16, ef_construction 100: approximate, so its recall stands beside it."""
    index = hnswlib.Index("ip", x.shape[1])
    index.init_index(len(x), M=16, ef_construction=100, random_seed=1)
    start = time.process_time()
    index.add_items(x, num_threads=1)
    tell(f"graph built in {time.process_time() - start:.0f} s")

    def at(ef: int) -> Method:
        def run(q: np.ndarray, k: int) -> np.ndarray:
            index.set_ef(ef)
            return index.knn_query(q, k, num_threads=1)[0].astype(np.int64)

        return run

    return {f"hnswlib HNSW, ef {ef}": at(ef) for ef in efs}


def recall(found: np.ndarray, exact: np.ndarray) -> float:
    """Mean share of the exact rows that were found."""
    pairs = zip(found, exact, strict=True)
    return sum(len(set(a) & set(b)) for a, b in pairs) / exact.size


def rows_of(methods: dict[str, Method], q: np.ndarray, k: int, turns: int) -> list[list[str]]:
    """A row a method: queries a second by wall and by processor time, ratios, agreement."""
    wall, cpu, found = {}, {}, {}
    for _ in range(turns):
        for name, run in methods.items():
            tell(f"{name}, {len(q)} queries")
            clock, work = time.perf_counter(), time.process_time()
            found[name] = run(q, k)
            wall[name] = min(wall.get(name, np.inf), time.perf_counter() - clock)
            cpu[name] = min(cpu.get(name, np.inf), time.process_time() - work)
    exact, base = found["ragcore float32"], "faiss IndexFlatIP"
    return [
        [
            name, str(len(q)), f"{len(q) / wall[name]:,.0f}", f"{len(q) / cpu[name]:,.0f}",
            f"{cpu[base] / cpu[name]:.2f}",
            "-" if found[name].max() < 0 else f"{recall(found[name], exact):.4f}",
        ]
        for name in methods
    ]  # fmt: skip


def main() -> None:
    """Print the table; with --update also put it into a Markdown file."""
    if any(os.environ.get(name) != one for name, one in BLAS.items()) or any(
        name in os.environ for name in SLOWS
    ):
        kept = {name: value for name, value in os.environ.items() if name not in SLOWS}
        os.execve(sys.executable, [sys.executable, *sys.argv], kept | BLAS)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=100_000, help="vectors")
    parser.add_argument("--d", type=int, default=384, help="dimensions")
    parser.add_argument("--k", type=int, default=10, help="nearest")
    parser.add_argument("--batches", type=int, nargs="+", default=[512, 32, 1], help="queries")
    parser.add_argument("--turns", type=int, default=5, help="turns of every method")
    parser.add_argument("--graph", action="store_true", help="also build and search HNSW")
    parser.add_argument("--update", type=Path, help="Markdown file whose table is replaced")
    options = parser.parse_args()
    rng = np.random.default_rng(7)
    x = clustered(options.n, options.d, rng)
    near = x[rng.integers(0, len(x), max(options.batches))]
    queries = near + np.float32(0.03) * rng.standard_normal(near.shape, np.float32)
    methods = {
        "ragcore float32": ragcore(x, "float32"), "ragcore int8": ragcore(x, "int8"),
        "faiss IndexFlatIP": flat(x), "NumPy product alone": product(x),
        "NumPy argpartition": partitioned(x), "hnswlib BFIndex": brute(x),
    }  # fmt: skip
    if options.graph:
        methods |= graphs(x, (10, 50, 100, 200))
    for run in methods.values():
        run(queries[:2], options.k)  # compile
    head = ["method", "batch", "q/s", "q/s of processor time", "CPU, faiss / it", "rows as exact"]
    rows = []
    for batch in options.batches:
        rows += rows_of(methods, queries[:batch], options.k, options.turns)
    about = f"{options.n:,} x {options.d} clustered unit vectors, k = {options.k}, one thread"
    publish("dense", [machine(), "", about, "", *table(head, rows, True)], options.update)


if __name__ == "__main__":
    main()
