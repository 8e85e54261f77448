"""Passages and questions for lexical search: natural-like statistics from a seed, or real text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]

WORDS = 600_000
"""Ranks of the word distribution; about two thirds are met in the corpus of full size."""
QUESTIONS = {"3 terms": 3, "6 terms": 6, "13 terms": 13, "27 terms": 27}
"""Sets of questions by their number of distinct terms."""


@dataclass
class Text:
    """Tokens of all documents, one after another, and their postings.

    Attributes
    ----------
    starts, tokens : where each document begins; codes of its words.
    offsets, docs, tfs : the same grouped by term.
    """

    starts: I64
    tokens: I32
    offsets: I64
    docs: I32
    tfs: I32

    @property
    def lengths(self) -> I32:
        """Lengths of the documents in tokens."""
        return np.diff(self.starts).astype(np.int32)

    def words(self, doc: int) -> list[int]:
        """Codes of one document."""
        return self.tokens[self.starts[doc] : self.starts[doc + 1]].tolist()


def postings(starts: I64, tokens: I32, n_terms: int) -> Text:
    """Group tokens by term."""
    n = starts.size - 1
    doc = np.repeat(np.arange(n), np.diff(starts))
    keys, tfs = np.unique(tokens.astype(np.int64) * n + doc, return_counts=True)
    terms, docs = np.divmod(keys, n)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(terms, minlength=n_terms))])
    return Text(starts, tokens, offsets, docs.astype(np.int32), tfs.astype(np.int32))


def word_law() -> NDArray[np.float64]:
    """Probabilities of word ranks: a head of function words, Zipf's law, a steeper tail."""
    rank = np.arange(1, WORDS + 1)
    weight = 1.0 / (rank + 2.0) / (1.0 + rank / 30_000.0) ** 0.3
    return weight / weight.sum()


def draw(n_docs: int, seed: int) -> tuple[I64, I32, int]:
    """Starts and tokens of random passages of about 57 words, and the number of terms.

    A word that is no function word comes again in its passage more often than by chance: nine in
    twenty of its places repeat an earlier word of the passage.
    """
    rng = np.random.default_rng(seed)
    lengths = np.clip(rng.lognormal(3.85, 0.62, n_docs), 5, 600).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    cumulated = np.cumsum(word_law())
    cumulated[-1] = 1.0
    ranks = np.searchsorted(cumulated, rng.random(starts[-1])).astype(np.int32)
    place = np.arange(starts[-1]) - np.repeat(starts[:-1], lengths)
    again = (rng.random(starts[-1]) < 0.45) & (ranks > 120) & (place > 0)
    where = np.flatnonzero(again)
    back = 1 + (rng.random(where.size) * place[where]).astype(np.int64)
    source = ranks[where - back]
    ranks[where] = np.where(source > 120, source, ranks[where])
    known, tokens = np.unique(ranks, return_inverse=True)
    return starts, tokens.astype(np.int32), known.size


def make_text(n_docs: int = 286_823, seed: int = 57) -> Text:
    """Random passages."""
    return postings(*draw(n_docs, seed))


def read_text(path: Path, column: str = "text") -> Text:
    """Passages of a Parquet file: words in lower case, terms numbered by falling frequency."""
    import pyarrow.parquet as pq

    codes: dict[str, int] = {}
    starts, tokens = [0], []
    for text in pq.read_table(path, columns=[column])[column].to_pylist():
        tokens += [codes.setdefault(w, len(codes)) for w in re.findall(r"\w+", text.lower())]
        starts.append(len(tokens))
    return postings(np.array(starts), np.array(tokens, np.int32), len(codes))


def questions(text: Text, n_terms: int, n: int, seed: int = 3) -> list[list[int]]:
    """`n` questions of `n_terms` distinct terms: words of a passage, every fourth from another."""
    rng = np.random.default_rng([seed, n_terms])
    out: list[list[int]] = []
    while len(out) < n:
        words = list(dict.fromkeys(text.words(int(rng.integers(text.starts.size - 1)))))
        if len(words) < n_terms:
            continue
        at = int(rng.integers(len(words) - n_terms + 1))
        asked = words[at : at + n_terms]
        for i in np.flatnonzero(rng.random(n_terms) < 0.25):
            other = int(text.tokens[rng.integers(text.tokens.size)])
            if other not in asked:
                asked[i] = other
        out.append(asked)
    return out
