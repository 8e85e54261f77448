"""The main job, as a user calls it: files -> scores, and the table of exact intervals."""

from __future__ import annotations

from ragcore import score
from ragcore.measures.ranked import STANDARD

from .workload import FORMATS, Workloads


def run_score(folder: str, size: str, form: str, labels: str, threads: int = 1):
    """Scores of the 13 standard measures."""
    run, qrels = (f"{folder}/{size}/{name}.{FORMATS[form]}" for name in ("run0", f"qrels.{labels}"))
    return score(run, qrels=qrels, measures=STANDARD, threads=threads)


class Score(Workloads):
    """Values of every case and their means."""

    params = (("S", "M"), ("arrow", "dict", "trec"), ("sparse", "pooled"))
    param_names = ("size", "format", "labels")

    def setup(self, folder, size, form, labels):
        run_score(folder, "XS", form, labels).means()  # load the kernels outside the timing

    def time_score(self, folder, size, form, labels):
        run_score(folder, size, form, labels).means()


class Shuffled(Workloads):
    """The same with the rows of every ranking in random order."""

    params = (("S", "M"), ("sparse", "pooled"))
    param_names = ("size", "labels")

    def setup(self, folder, size, labels):
        run_score(f"{folder}/shuffled", "XS", "arrow", labels).means()

    def time_score(self, folder, size, labels):
        run_score(f"{folder}/shuffled", size, "arrow", labels).means()


class Threads(Workloads):
    """The same on several threads; the result is the same too."""

    params = (1, 2)
    param_names = ("threads",)

    def setup(self, folder, threads):
        run_score(folder, "XS", "arrow", "pooled").means()

    def time_score(self, folder, threads):
        run_score(folder, "M", "arrow", "pooled", threads).means()


class Summary(Workloads):
    """Exact intervals of 13 means, and the long table of values."""

    params = ("S", "M")
    param_names = ("size",)

    def setup(self, folder, size):
        self.scores = run_score(folder, size, "arrow", "sparse")
        self.scores.summary()

    def time_summary(self, folder, size):
        self.scores.summary()

    def time_table(self, folder, size):
        self.scores.table()


class Memory(Workloads):
    """Peak resident memory of a whole process; XS shows what imports and kernels need alone."""

    params = (("XS", "M"), ("arrow", "dict", "trec"))
    param_names = ("size", "format")

    def peakmem_score(self, folder, size, form):
        run_score(folder, size, form, "pooled").means()
