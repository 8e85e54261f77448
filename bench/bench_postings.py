"""Postings from a tantivy index: opening, terms, lookups, posting lists by length, the whole.

The index is synthetic: words drawn by Zipf's law, documents of log-normal length, one segment.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import tantivy

from ragcore_kernels import blocks
from ragcore_kernels._jit import compiled_count
from ragcore_kernels.postings import TantivyPostings

N_DOCS, N_WORDS, EXPONENT = 30_000, 150_000, 1.05
LISTS = {"long": (4_000, 2**31), "128 and more": (128, 4_000), "short": (2, 128), "one": (1, 2)}
"""Kinds of posting lists, by their number of documents."""


def build(path: str, n_docs: int = N_DOCS, n_words: int = N_WORDS) -> None:
    """Write an index of `n_docs` documents into folder `path`."""
    rng = np.random.default_rng(7)
    weights = np.cumsum(np.arange(1, n_words + 1) ** -EXPONENT)
    names = np.array([f"{chr(97 + k % 26)}{k:x}" for k in rng.permutation(n_words)])
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("body", tokenizer_name="whitespace", index_option="freq")
    writer = tantivy.Index(builder.build(), path).writer(1_000_000_000, 1)
    for begin in range(0, n_docs, 10_000):
        n = min(10_000, n_docs - begin)
        ends = np.cumsum([0, *np.maximum(1, rng.lognormal(3.9, 0.6, n)).astype(int)])
        words = names[np.searchsorted(weights, rng.random(ends[-1]) * weights[-1])]
        for a, b in pairwise(ends):
            writer.add_document(tantivy.Document(body=" ".join(words[a:b])))
    writer.commit()
    writer.wait_merging_threads()


class Index:
    """One index for all; one thread, and fresh memory for the postings each time."""

    timeout = 300

    def setup_cache(self):
        folder = Path("postings").resolve()
        folder.mkdir()
        build(str(folder))
        return folder

    def setup(self, folder, *_):
        self.index = TantivyPostings.open(folder, "body")
        (self.offsets, self.data), self.csr = self.index.read_all()

    def words(self, numbers):
        """Terms by their numbers."""
        return [self.data[self.offsets[k] : self.offsets[k + 1]].tobytes() for k in numbers]


class Whole(Index):
    """Opening, lookups and reading everything."""

    def setup(self, folder):
        super().setup(folder)
        rng = np.random.default_rng(3)
        likely = rng.integers(0, self.csr.docs.size, 330)  # of 100 questions
        asked = np.unique(np.searchsorted(self.csr.offsets, likely, "right") - 1)
        self.terms = self.words(asked)
        self.many = self.words(rng.integers(0, self.offsets.size - 1, 10_000))
        self.time_open_and_100_questions(folder)
        self.time_lengths(folder)

    def time_open(self, folder):
        TantivyPostings.open(folder, "body")

    def time_open_verified(self, folder):
        TantivyPostings.open(folder, "body", verify=True)

    def time_open_and_100_questions(self, folder):
        index = TantivyPostings.open(folder, "body")
        index.postings(index.lookup(self.terms))

    def time_lookup_10_000(self, folder):
        self.index.lookup(self.many)

    def time_terms(self, folder):
        self.index.terms()

    def time_read_all(self, folder):
        self.index.read_all()

    def time_lengths(self, folder):
        self.index.lengths(self.csr)

    def track_specialisations(self, folder):
        return compiled_count(blocks.decode_lists)

    track_specialisations.unit = "signatures"


class Lists(Index):
    """Posting lists of one kind."""

    params = tuple(LISTS)
    param_names = ("lists",)

    def setup(self, folder, lists):
        super().setup(folder)
        low, high = LISTS[lists]
        sizes = np.diff(self.csr.offsets)
        self.ordinals = np.flatnonzero((sizes >= low) & (sizes < high))[:, None]
        self.time_postings(folder, lists)

    def time_postings(self, folder, lists):
        self.index.postings(self.ordinals)

    def track_postings(self, folder, lists):
        return self.index.postings(self.ordinals).docs.size

    track_postings.unit = "postings"
