"""BM25 in plain Python over documents as lists of term codes: the truth for the kernels."""

from __future__ import annotations

import math
import struct
from collections import Counter


def rounded(x: float) -> float:
    """The float32 nearest to `x`."""
    try:
        return struct.unpack("f", struct.pack("f", x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)


def byte_length(length: int) -> int:
    """The greatest length that tantivy's byte can hold and that is not above `length`."""
    if length < 40:
        return length
    low, step = 40, 2
    while True:
        for j in range(8):
            if low + step * (j + 1) > length:
                return low + step * j
        low, step = low + 8 * step, 2 * step


def term_value(variant, tf, df, n_docs, length, avgdl, k1, b, delta):
    """The published value of one matching term, in float64."""
    n = 1 - b + b * (length / avgdl) if avgdl else 1.0
    odds = (n_docs - df + 0.5) / (df + 0.5)
    if variant == "tantivy":
        return math.log(1 + odds) * tf * (k1 + 1) / (tf + k1 * n)
    if variant == "lucene":
        return math.log(1 + odds) * tf / (tf + k1 * n)
    if variant == "robertson":
        return math.log(max(1, odds)) * tf / (tf + k1 * n)
    if variant == "atire":
        return math.log(n_docs / df) * tf * (k1 + 1) / (tf + k1 * n)
    if variant == "bm25l":
        c = tf / n if n else math.inf
        part = 1.0 if c == math.inf else (c + delta) / (k1 + c + delta)
        return math.log((n_docs + 1) / (df + 0.5)) * (k1 + 1) * part
    assert variant == "bm25+"
    return math.log((n_docs + 1) / df) * (tf * (k1 + 1) / (tf + k1 * n) + delta)


class Documents:
    """A collection, document by document."""

    def __init__(self, texts: list[list[int]], n_terms: int) -> None:
        self.texts = texts
        self.n_terms = n_terms
        self.counts = [Counter(text) for text in texts]
        self.df = [sum(t in c for c in self.counts) for t in range(n_terms)]

    def postings(self):
        """offsets, docs, tfs, lengths as lists."""
        offsets, docs, tfs = [0], [], []
        for term in range(self.n_terms):
            for d, count in enumerate(self.counts):
                if term in count:
                    docs.append(d)
                    tfs.append(count[term])
            offsets.append(len(docs))
        return offsets, docs, tfs, [len(text) for text in self.texts]

    def scores(self, query, variant, lengths, k1=1.2, b=0.75, delta=0.0):
        """(document, float64 score) of every document that holds a term of positive weight."""
        avgdl = sum(map(len, self.texts)) / len(self.texts) if self.texts else 0.0
        out = {}
        for d, count in enumerate(self.counts):
            length = len(self.texts[d])
            length = byte_length(length) if lengths == "tantivy" else length
            held = [(t, w) for t, w in query if w > 0 and count.get(t, 0) > 0]
            if held:
                out[d] = math.fsum(
                    w * term_value(variant, count[t], self.df[t], len(self.texts), length,
                                   avgdl, k1, b, delta)
                    for t, w in held
                )  # fmt: skip
        return out
