"""Splitting work over a thread pool: the kernels drop the GIL, so this is all it takes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

S = TypeVar("S")
T = TypeVar("T")


def default_threads() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_split(
    work: Callable[[int, int], T], n: int, threads: int, weights: list[int] | None = None
) -> list[T]:
    """Call ``work(begin, end)`` for `threads` contiguous parts of ``range(n)``; results in order.

    `weights`, if given, are where the parts end instead of at equal distances.
    """
    cuts = weights or [n * i // threads for i in range(threads + 1)]
    parts = [(a, b) for a, b in pairwise(cuts) if b > a]
    if len(parts) <= 1:
        return [work(a, b) for a, b in parts] or [work(0, 0)]
    with ThreadPoolExecutor(len(parts)) as pool:
        return list(pool.map(lambda part: work(*part), parts))


def in_threads(work: Callable[[S], T], jobs: Sequence[S], threads: int) -> list[T]:
    """``[work(job) for job in jobs]`` over a pool; results in the order of the jobs.

    Neighbours go together, a few dozen parts a thread: handing over a job costs more than many a
    job takes.
    """
    if threads <= 1 or len(jobs) <= 1:
        return [work(job) for job in jobs]
    n = min(len(jobs), 24 * threads)
    parts = [jobs[len(jobs) * i // n : len(jobs) * (i + 1) // n] for i in range(n)]
    with ThreadPoolExecutor(threads) as pool:
        done = pool.map(lambda part: [work(job) for job in part], parts)
        return [result for part in done for result in part]
