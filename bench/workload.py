"""A seeded scoring workload in the likeness of passage retrieval: one run, two sets of judgements.

python bench/workload.py --size S M --out DIR

writes into DIR/S and DIR/M:

    run0.arrow  run0.dict.arrow  run0.parquet  run0.trec
    qrels.sparse.arrow ...       one to three relevant documents a query
    qrels.pooled.arrow ...       100 judged documents a query

What real runs have, these have: tied scores, short rankings, judged queries that the run misses,
queries without judgements, queries without a relevant document. Scores are multiples of 1/1024,
so that float32, float64 and text all hold the same number.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

I64 = NDArray[np.int64]

SIZES = {"XS": (50, 50), "S": (300, 100), "M": (7_000, 1_000), "L": (20_000, 1_000)}
"""Judged queries, and ranks of each."""

FORMATS = {"arrow": "arrow", "dict": "dict.arrow", "parquet": "parquet", "trec": "trec"}
"""Format -> ending of its files."""

LABELS = ("sparse", "pooled")
N_DOCS = 8_841_823  # about the passages of MS MARCO; a prime, so that every stride visits all
BATCH_ROWS = 65_536
AT_ONCE = 1_000  # queries drawn together
POOL = 1.6  # documents that compete for each rank
UNSEEN = 10  # a document this many pools away is never retrieved


class Documents:
    """Which document stands at a slot of a query's pool: distinct for distinct slots."""

    def __init__(self, rng: np.random.Generator, n_queries: int) -> None:
        self._start = rng.integers(0, N_DOCS, n_queries)
        self._stride = rng.integers(1, N_DOCS, n_queries)

    def at(self, query: I64, slot: I64) -> I64:
        """Number of the document at `slot` of `query`."""
        return (self._start[query] + self._stride[query] * slot) % N_DOCS


def judge_sparsely(rng: np.random.Generator, n: int, pool: int) -> tuple[I64, I64, I64]:
    """Query, slot and grade of one to three relevant documents a query, mostly near the top."""
    query = np.repeat(np.arange(n), rng.choice([1, 2, 3], n, p=[0.9, 0.07, 0.03]))
    slot = (pool * rng.random(query.size) ** 6).astype(np.int64) + rng.integers(0, 3, query.size)
    slot += UNSEEN * pool * (rng.random(query.size) < 0.15)
    _, first = np.unique(np.stack([query, slot]), axis=1, return_index=True)
    return query[first], slot[first], rng.choice([1, 2, 3], first.size, p=[0.6, 0.25, 0.15])


def judge_pools(rng: np.random.Generator, n: int, pool: int) -> tuple[I64, I64, I64]:
    """Query, slot and grade of 100 documents a query: 70 of the first 200, the rest unseen."""
    top = min(pool, 200)
    near = np.argsort(rng.random((n, top)), axis=1)[:, :70]
    far = UNSEEN * pool + np.argsort(rng.random((n, 200)), axis=1)[:, : 100 - near.shape[1]]
    slot = np.concatenate([near, far], axis=1)
    chance = 0.6 * np.clip(np.exp(-slot / (0.12 * pool)), 0.02, 0.9)
    grade = rng.choice([1, 2, 3], slot.shape, p=[0.5, 0.3, 0.2]) * (rng.random(slot.shape) < chance)
    return np.repeat(np.arange(n), 100), slot.ravel(), grade.ravel()


def retrieve(
    rng: np.random.Generator, queries: I64, documents: Documents, depth: int, shuffle: bool
) -> tuple[I64, I64, NDArray[np.float32]]:
    """Query, document and score of every row: rankings side by side, best first if not shuffled."""
    pool = int(POOL * depth)
    slots = np.arange(pool)
    merit = 12 + 18 * np.exp(-slots / (0.06 * depth)) - 6 * slots / pool
    parts = []
    for first in range(0, queries.size, AT_ONCE):
        some = queries[first : first + AT_ONCE]
        latent = merit + rng.normal(0, 1.2, (some.size, pool))
        slot = np.argsort(-latent, axis=1, kind="stable")[:, :depth]
        score = np.round(np.take_along_axis(latent, slot, 1) * 1024) / 1024
        tied = rng.random((some.size, depth - 1)) < 0.02
        score[:, 1:][tied] = score[:, :-1][tied]
        length = np.where(rng.random(some.size) < 0.01, rng.integers(1, depth, some.size), depth)
        kept = np.arange(depth) < length[:, None]
        query = np.broadcast_to(some[:, None], kept.shape)
        if shuffle:
            order = np.argsort(rng.random(kept.shape), axis=1)
            slot, score, kept = (np.take_along_axis(a, order, 1) for a in (slot, score, kept))
        parts.append((query[kept], documents.at(query[kept], slot[kept]), score[kept]))
    query, document, score = (np.concatenate(part) for part in zip(*parts, strict=True))
    return query, document, score.astype(np.float32)


def names(numbers: I64) -> pa.Array:
    """Document ids: D17."""
    return pc.binary_join_element_wise(pa.scalar("D"), pc.cast(pa.array(numbers), pa.string()), "")


def with_dictionaries(table: pa.Table) -> pa.Table:
    """The same table with both id columns dictionary-encoded."""
    for at, name in enumerate(("query_id", "doc_id")):
        codes = table[name].combine_chunks().dictionary_encode()
        table = table.set_column(at, name, codes)
    return table


def write_trec(path: Path, table: pa.Table, value: str) -> None:
    """TREC text: six fields of a run, four of judgements."""
    from pyarrow import csv

    n = len(table)
    if value == "score":
        query = table["query_id"].combine_chunks()
        change = np.flatnonzero(np.asarray(pc.not_equal(query[1:], query[:-1]))) + 1
        starts = np.concatenate([[0], change])
        rank = np.arange(n) - np.repeat(starts, np.diff(np.append(starts, n))) + 1
        columns = [query, pa.repeat("Q0", n), table["doc_id"], rank,
                   table["score"].cast(pa.float64()), pa.repeat("run0", n)]  # fmt: skip
    else:
        columns = [table["query_id"], pa.repeat("0", n), table["doc_id"], table[value]]
    lines = pa.table(columns, names=[f"field{i}" for i in range(len(columns))])
    options = csv.WriteOptions(include_header=False, delimiter=" ", quoting_style="none")
    csv.write_csv(lines, path, options)


def write(folder: Path, stem: str, table: pa.Table, formats: list[str]) -> None:
    """One table in every format, as ``folder/stem.ending``."""
    value = table.column_names[2]
    for form in formats:
        path = folder / f"{stem}.{FORMATS[form]}"
        if form == "trec":
            write_trec(path, table, value)
        elif form == "parquet":
            from pyarrow import parquet

            parquet.write_table(table, path)
        else:
            made = with_dictionaries(table) if form == "dict" else table
            with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, made.schema) as sink:
                sink.write_table(made, max_chunksize=BATCH_ROWS)


def make(
    size: str,
    out: Path,
    formats: list[str] | None = None,
    *,
    shuffle: bool = False,
    seed: int = 11,
) -> Path:
    """Write the workload of one size; the folder that it is in.

    Parameters
    ----------
    size : a key of `SIZES`.
    out : where; the files go to ``out/size``.
    formats : keys of `FORMATS`; None = all.
    shuffle : rows of every ranking in random order instead of best first.
    """
    n, depth = SIZES[size]
    folder = out / size
    folder.mkdir(parents=True, exist_ok=True)
    chosen = list(FORMATS) if formats is None else formats
    rng = np.random.default_rng([seed, n, depth])
    n_all = n + max(1, n // 100)  # the last have rankings, but no judgements
    ids = pc.cast(pa.array(rng.permutation(1_200_000)[:n_all] + 1), pa.string())
    documents = Documents(rng, n_all)
    barren = rng.random(n) < 0.02
    for label, draw in zip(LABELS, (judge_sparsely, judge_pools), strict=True):
        query, slot, grade = draw(rng, n, int(POOL * depth))
        grade = np.where(barren[query], 0, grade).astype(np.int32)
        table = {"query_id": ids.take(pa.array(query)), "doc_id": names(documents.at(query, slot)),
                 "relevance": grade}  # fmt: skip
        write(folder, f"qrels.{label}", pa.table(table), chosen)
    missed = np.concatenate([rng.random(n) < 0.01, np.zeros(n_all - n, np.bool_)])
    query, document, score = retrieve(rng, np.flatnonzero(~missed), documents, depth, shuffle)
    table = {"query_id": ids.take(pa.array(query)), "doc_id": names(document), "score": score}
    write(folder, "run0", pa.table(table), chosen)
    return folder


class Workloads:
    """Base of the asv suites that read files: asv makes them once, and hands over the folder."""

    def setup_cache(self) -> str:
        folder = Path.cwd()
        for size in ("XS", "S", "M"):
            make(size, folder, ["arrow", "dict", "trec"])
            make(size, folder / "shuffled", ["arrow"], shuffle=True)
        return str(folder)

    setup_cache.timeout = 300  # type: ignore[attr-defined]


def main() -> None:
    """Write workloads."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", nargs="+", choices=SIZES, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--formats", nargs="+", choices=FORMATS)
    parser.add_argument("--shuffle", action="store_true", help="rows in random order")
    parser.add_argument("--seed", type=int, default=11)
    options = parser.parse_args()
    for size in options.size:
        print(make(size, options.out, options.formats, shuffle=options.shuffle, seed=options.seed))


if __name__ == "__main__":
    main()
