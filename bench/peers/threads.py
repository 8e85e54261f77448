"""BM25 on one and on two threads, in turns: how many times as fast.

python bench/peers/threads.py
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

import numpy as np
from report import machine

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from passages import make_text, questions

from ragcore_kernels.bm25 import Collection, Scorer

QUESTIONS, TURNS = 1_024, 7


def main() -> None:
    """Print microseconds a question, and the median ratio of turns."""
    text = make_text()
    scorer = Scorer(Collection(text.offsets.astype(np.int64), text.docs, text.tfs, text.lengths))
    print(machine())
    for n_terms in (6, 27):
        asked = questions(text, n_terms, QUESTIONS)
        offsets = np.cumsum([0, *map(len, asked)])
        codes = np.array([term for each in asked for term in each], np.int64)
        for k in (10, 1_000):
            spent: dict[int, list[float]] = {1: [], 2: []}
            for turn in range(TURNS + 1):
                for threads, times in spent.items():
                    begin = time.perf_counter()
                    scorer.search(offsets, codes, k, threads=threads)
                    if turn:
                        times.append(time.perf_counter() - begin)
            one, two = (1e6 * statistics.median(times) / QUESTIONS for times in spent.values())
            ratio = statistics.median([a / b for a, b in zip(spent[1], spent[2], strict=True)])
            print(f"{n_terms} terms, k = {k}: {one:.1f} us, {two:.1f} us, {ratio:.2f} times")


if __name__ == "__main__":
    main()
