"""BM25 over random passages: preparing lists, the best k, fast and plain."""

from __future__ import annotations

import numpy as np

from ragcore_kernels import bm25, bm25_pack, bm25_plain, bm25_scan
from ragcore_kernels._jit import compiled_count
from ragcore_kernels.bm25 import Collection, Scorer

from .passages import QUESTIONS, make_text, questions

PASSAGES, ASKED = 60_000, 128


class Lexical:
    """Passages and questions, the same for all."""

    timeout = 300

    def setup_cache(self):
        text = make_text(PASSAGES)
        asked = {name: questions(text, n, ASKED) for name, n in QUESTIONS.items()}
        return (text.offsets, text.docs, text.tfs, text.lengths), asked


class Prepare(Lexical):
    """All lists, or those of a batch of questions."""

    params = ("all", "6 terms")
    param_names = ("lists",)

    def setup(self, cache, lists):
        arrays, asked = cache
        self.collection = Collection(*arrays)
        self.terms = None if lists == "all" else np.unique(np.concatenate(asked[lists]))
        self.time_prepare(cache, lists)

    def time_prepare(self, cache, lists):
        Scorer(self.collection, terms=self.terms)


class Search(Lexical):
    """The best k of a batch of questions, one thread."""

    params = (tuple(QUESTIONS), (10, 100, 1_000), ("fast", "plain"))
    param_names = ("questions", "k", "kernel")

    def setup(self, cache, name, k, kernel):
        arrays, asked = cache
        self.scorer = Scorer(Collection(*arrays))
        if kernel == "plain":
            self.scorer._packed = None
        self.offsets = np.cumsum([0, *map(len, asked[name])])
        self.terms = np.concatenate(asked[name])
        self.time_search(cache, name, k, kernel)

    def time_search(self, cache, name, k, kernel):
        self.scorer.search(self.offsets, self.terms, k)

    def track_specialisations(self, cache, name, k, kernel):
        modules = (bm25, bm25_pack, bm25_plain, bm25_scan)
        return max(compiled_count(v) for m in modules for v in vars(m).values())

    track_specialisations.unit = "signatures"
