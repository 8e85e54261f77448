"""Fusion as a user calls it: runs on disk -> one case batch, cut once; and writing it."""

from __future__ import annotations

from pathlib import Path

from ragcore.fuse import fuse

from .many_runs import make_runs


class Runs:
    """Base of the suites: asv makes the runs once, and hands over the folder."""

    def setup_cache(self) -> str:
        folder = Path.cwd()
        make_runs("XS", 2, folder)
        make_runs("S", 5, folder)
        make_runs("M", 5, folder)
        make_runs("S", 2, folder / "shuffled", shuffle=True)
        return str(folder)

    setup_cache.timeout = 300  # type: ignore[attr-defined]


def fuse_runs(folder: str, size: str, n_runs: int, **options):
    """The fused run, and nothing beside it unless asked for."""
    runs = [f"{folder}/{size}/run{i}.arrow" for i in range(n_runs)]
    return fuse(runs, **{"depth": 1000, "stages": False, "overlap_depth": 0, **options})


class Fuse(Runs):
    """Two and five runs to their top 1,000, on one thread and two."""

    params = (("S", "M"), (2, 5), (1, 2))
    param_names = ("size", "runs", "threads")

    def setup(self, folder, size, n_runs, threads):
        fuse_runs(folder, "XS", 2)  # load the kernels outside the timing

    def time_rrf(self, folder, size, n_runs, threads):
        fuse_runs(folder, size, n_runs, threads=threads)


class Methods(Runs):
    """Sums of normalised scores; the first five documents only; all that is recorded."""

    params = ("S", "M")
    param_names = ("size",)

    def setup(self, folder, size):
        fuse_runs(folder, "XS", 2, method="combsum")

    def time_combsum(self, folder, size):
        fuse_runs(folder, size, 2, method="combsum", threads=1)

    def time_combmnz_z_score(self, folder, size):
        fuse_runs(folder, size, 2, method="combmnz", normalise="z-score", threads=1)

    def time_top_5(self, folder, size):
        fuse_runs(folder, size, 2, depth=5, threads=1)

    def time_with_stages_and_overlap(self, folder, size):
        fuse_runs(folder, size, 2, stages=True, overlap_depth=None, threads=1)


class Shuffled(Runs):
    """Rows of every ranking in random order: each list is sorted first."""

    def setup(self, folder):
        fuse_runs(folder, "XS", 2)

    def time_rrf(self, folder):
        fuse_runs(f"{folder}/shuffled", "S", 2, threads=1)


class Write(Runs):
    """A fused run with its stages and the hashes of its inputs, as a file."""

    def setup(self, folder):
        self.fused = fuse_runs(folder, "S", 2, stages=True)
        self.time_write(folder)

    def time_write(self, folder):
        self.fused.write(Path(folder) / "fused.arrow")
