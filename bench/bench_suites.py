"""Suites and sweeps, over the in-domain suite, which comes with the repository."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import ragcore
from ragcore.catalogue.entries import read_entry
from ragcore.catalogue.facts import facts_of
from ragcore.catalogue.ladder import run_suite
from ragcore.suites import open_suite

FOLDER = Path(__file__).resolve().parents[1] / "data" / "in_domain"


class Suites:
    """The ladder's parts, each by itself."""

    def setup(self):
        self.home = Path(tempfile.mkdtemp())
        self.entry = read_entry(FOLDER)
        self.suite = run_suite(self.entry, self.home / "suite").suite
        self.runs = sorted((self.home / "suite" / "runs").glob("*.arrow"))

    def teardown(self):
        shutil.rmtree(self.home)

    def time_run(self):
        """Index, three strategies, score."""
        run_suite(self.entry, self.home / "again")

    def time_score(self):
        """Three recorded runs, seven measures."""
        ragcore.score(self.runs, suite=self.home / "suite").means()

    def time_check(self):
        """Every label against the texts, every question's words against its evidence."""
        facts_of(open_suite(FOLDER))


class Sweeps:
    """One deviation, replayed; the rest of the sweep is done."""

    def setup(self):
        self.home = Path(tempfile.mkdtemp())
        self.k = 60
        self.given = {
            "suite": str(FOLDER), "measures": ["R@5"], "by": [],
            "production": {"strategy": "hybrid-exact", "filters": ["lang", "acl"]},
            "sweep": {"candidate_k": [100], "strategies": {"candidate_k": ["hybrid-exact"]}},
        }  # fmt: skip
        ragcore.sweep(self.given, state=self.home)

    def teardown(self):
        shutil.rmtree(self.home)

    def time_replay(self):
        """A constant of fusion that no row had yet: fused, scored, compared."""
        self.k += 1  # never one that is kept already
        given = {**self.given, "deviation": {"d": {"rrf_k": self.k}}}
        ragcore.sweep(given, state=self.home)
