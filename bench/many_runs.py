"""Several runs of one workload: the same queries and pools of documents, other draws.

python -m bench.many_runs --size M --runs 5 --out DIR

writes run0.arrow, run1.arrow, ... into DIR/M. Two runs share most of their documents.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.workload import SIZES, Documents, names, retrieve, write


def make_runs(size: str, n_runs: int, out: Path, seed: int = 11, shuffle: bool = False) -> Path:
    """Write the runs of one size; the folder that they are in.

    Parameters
    ----------
    size : a key of `workload.SIZES`.
    n_runs : how many; the first ones are the same for any number.
    out : where; the files go to ``out/size``.
    shuffle : rows of every ranking in random order instead of best first.
    """
    n, depth = SIZES[size]
    folder = out / size
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng([seed, n, depth])
    ids = pc.cast(pa.array(rng.permutation(1_200_000)[:n] + 1), pa.string())
    documents = Documents(rng, n)
    for number in range(n_runs):
        draws = np.random.default_rng([seed, n, depth, number])
        held = np.flatnonzero(draws.random(n) >= 0.01)
        query, document, score = retrieve(draws, held, documents, depth, shuffle)
        columns = {
            "query_id": ids.take(pa.array(query)), "doc_id": names(document), "score": score
        }  # fmt: skip
        write(folder, f"run{number}", pa.table(columns), ["arrow"])
    return folder


def main() -> None:
    """Write runs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", choices=SIZES, required=True)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--shuffle", action="store_true", help="rows in random order")
    options = parser.parse_args()
    print(make_runs(options.size, options.runs, options.out, shuffle=options.shuffle))


if __name__ == "__main__":
    main()
