"""The kernels of the main job one by one, on rows that are loaded already."""

from __future__ import annotations

import importlib
from collections import Counter
from fractions import Fraction
from itertools import accumulate
from pathlib import Path

import numpy as np

from ragcore import score
from ragcore.columns import CaseCodes
from ragcore.loading import load_judgements, load_runs
from ragcore.measures import engine, rankings, registry
from ragcore.measures.ranked import STANDARD, Specification
from ragcore_kernels import ids, lines
from ragcore_kernels._jit import address_of, compiled_count
from ragcore_kernels.resample import mean_interval

from .workload import FORMATS, Workloads


def load(folder: str, size: str, form: str = "arrow", labels: str = "sparse"):
    """Rows of the run, the grouped judgements, and what the rankings are."""
    codes = CaseCodes()
    rows = load_runs(f"{folder}/{size}/run0.{FORMATS[form]}", 1)[0].rows
    qrels = load_judgements(f"{folder}/{size}/qrels.{labels}.{FORMATS[form]}", 1)
    judged = rankings.labels_of_qrels(qrels, codes)
    return rows, judged, rankings.rankings_of(rows, judged, codes)


class FindSegments(Workloads):
    """Where the case changes."""

    params = (("S", "M"), ("arrow", "dict"))
    param_names = ("size", "format")

    def setup(self, folder, size, form):
        self.rows = load(folder, size, form)[0]
        self.out = np.empty((self.rows.n_rows, 3), np.int64)
        self.time_find_segments(folder, size, form)

    def time_find_segments(self, folder, size, form):
        table = self.rows.case_ids.table
        ids.find_segments(table, np.zeros(4, np.int64), len(table), self.out)


class Intern(Workloads):
    """A code for every judged document of the pool: one in a hundred is there already."""

    params = (("S", "M"), ("arrow", "dict"))
    param_names = ("size", "format")

    def setup(self, folder, size, form):
        self.rows = load(folder, size, form, "pooled")[1].rows
        table, n = self.rows.ids.table, self.rows.n_rows
        piece = np.repeat(np.arange(len(table)), table[:, 0])
        self.where = np.stack([piece, np.arange(n) - table[piece, 7]], 1)
        self.slots = np.empty(1 << (2 * n).bit_length(), np.int64)
        self.keys = np.empty((self.slots.size // 2 + 1, 2), np.int64)
        self.codes = np.empty(n, np.int64)
        self.time_intern(folder, size, form)
        assert self.state[0] == n

    def time_intern(self, folder, size, form):
        self.slots.fill(-1)
        self.state = np.zeros(2, np.int64)
        args = (self.rows.ids.table, self.where, self.state, self.slots, self.keys, self.codes)
        ids.intern(*args)


class FindHits(Workloads):
    """Ranks and grades of the judged documents, one thread."""

    params = (("S", "M"), ("sparse", "pooled"), ("best first", "shuffled"))
    param_names = ("size", "labels", "rows")

    def setup(self, folder, size, labels, rows):
        place = folder if rows == "best first" else f"{folder}/shuffled"
        self.loaded = load(place, size, "arrow", labels)
        self.time_find_hits(folder, size, labels, rows)

    def time_find_hits(self, folder, size, labels, rows):
        engine.find_hits(*self.loaded, engine.Options())


class Evaluate(Workloads):
    """The 13 standard measures from the hits."""

    params = (("S", "M"), ("sparse", "pooled"))
    param_names = ("size", "labels")

    def setup(self, folder, size, labels):
        self.hits = engine.find_hits(*load(folder, size, "arrow", labels), engine.Options())
        self.spec = Specification(registry.parse(list(STANDARD)))
        self.hits.evaluate(self.spec)

    def time_evaluate(self, folder, size, labels):
        self.hits.evaluate(self.spec)


class ParseRun(Workloads):
    """TREC text to columns: one block of 16 MiB or less."""

    params = ("S", "M")
    param_names = ("size",)

    def setup(self, folder, size):
        with Path(f"{folder}/{size}/run0.trec").open("rb") as stream:
            text = stream.read(16 << 20)
        self.text = np.frombuffer(text[: text.rindex(b"\n") + 1], np.uint8)
        n, rows = self.text.size, self.text.size // lines.RUN_LINE + 1
        i32, i64, u8 = (np.int32, np.int64, np.uint8)
        sizes = ((rows, i32), (n, u8), (rows, np.float64), (rows, i64), (rows, i64), (rows, i32),
                 (n, u8), (rows, i64), (rows, i32), (n, u8), (lines.N_COUNTS, i64))  # fmt: skip
        self.columns = [np.empty(*size) for size in sizes]
        self.tag = np.frombuffer(b"run0", np.uint8)
        self.time_parse_run(folder, size)
        assert self.columns[-1][lines.ERROR] == 0

    def time_parse_run(self, folder, size):
        tag = (address_of(self.tag), self.tag.size)
        lines.parse_run(address_of(self.text), self.text.size, *tag, *self.columns)


def values(kind: str, n: int) -> np.ndarray:
    """Plausible values of a measure, or of a difference of measures."""
    rng = np.random.default_rng(n)
    if kind == "0, 1":
        return (rng.random(n) < 0.3) + 0.0
    if kind == "-1, 0, 1":
        return rng.choice([-1.0, 0.0, 1.0], n, p=[0.15, 0.6, 0.25])
    if kind == "RR@10":
        rank = rng.geometric(0.25, n)
        return np.where(rank <= 10, 1 / rank, 0.0)
    discount = 1 / np.log2(np.arange(2, 12))
    found = rng.random((n, 10)) < 0.2
    return found @ discount / np.cumsum(discount)[np.maximum(found.sum(1), 1) - 1]


class MeanInterval:
    """The exact bootstrap interval of a mean."""

    params = (("0, 1", "-1, 0, 1", "RR@10", "nDCG@10"), (300, 7_000))
    param_names = ("values", "n")

    def setup(self, kind, n):
        self.values = values(kind, n)
        mean_interval(self.values)

    def time_mean_interval(self, kind, n):
        mean_interval(self.values)


def exact_ends(numerators: list[int], denominator: int, level: Fraction) -> tuple[float, float]:
    """Ends of the interval of the mean of numerators / denominator >= 0, in integers.

    The n-th power of the polynomial whose coefficients count the values, packed into one integer.
    """
    n, counts = len(numerators), Counter(numerators)
    width = (n**n).bit_length() + 1
    power = sum(count << (width * value) for value, count in counts.items()) ** n
    ways = [(power >> (width * s)) & ((1 << width) - 1) for s in range(n * max(counts) + 1)]
    wanted = (1 - level) / 2 * n**n

    def end(ordered: list[int]) -> int:
        return next(s for s, total in enumerate(accumulate(ordered)) if total >= wanted)

    high = len(ways) - 1 - end(ways[::-1])
    return tuple(float(Fraction(s, denominator * n)) for s in (end(ways), high))


class IntervalError:
    """How far ends are from integer arithmetic; off a lattice, the bound that comes with them."""

    params = ("0, 1", "P@5", "nDCG@10")
    param_names = ("values",)
    unit = "distance"

    def track_error(self, kind):
        if kind == "nDCG@10":
            return mean_interval(values(kind, 7_000)).bound
        n, top = (300, 1) if kind == "0, 1" else (100, 5)
        numerators = np.random.default_rng(n).integers(0, top, n, endpoint=True).tolist()
        found = mean_interval(np.array(numerators) / top)
        low, high = exact_ends(numerators, top, Fraction(95, 100))
        return max(abs(found.low - low), abs(found.high - high))


KERNELS = (
    "ids.find_segments", "ids.intern", "ids.group", "ranking.find_hits", "order.tidy",
    "measures.evaluate", "lines.parse_run", "lines.parse_qrels", "inversion.scan",
    "inversion.transform", "quantile.lattice_quantile", "quantile.bracket_quantile",
)  # fmt: skip


class Specialisations(Workloads):
    """How often a kernel was compiled after files of every kind: once, or a type has slipped."""

    params = KERNELS
    param_names = ("kernel",)
    unit = "signatures"

    def setup(self, folder, name):
        for form in ("arrow", "dict", "trec"):
            for labels in ("sparse", "pooled"):
                run, qrels = (
                    f"{folder}/XS/{n}.{FORMATS[form]}" for n in ("run0", f"qrels.{labels}")
                )
                score([run], qrels=qrels, duplicates="max", drop_identical_ids=True).summary()
        mean_interval(values("nDCG@10", 300))
        mean_interval(np.arange(30.0) % 7)

    def track_specialisations(self, folder, name):
        module, kernel = name.split(".")
        found = getattr(importlib.import_module(f"ragcore_kernels.{module}"), kernel)
        return compiled_count(found)
