"""Answers as TREC RAG exchanges them: references, sentences citing them by index, a length limit.

Indices start at 0. Merging equal references moves the ones behind them, so citations are mapped
with them; what lies outside the list is counted and listed, never dropped in silence.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import NamedTuple

LIMIT = 400
"""Tokens that the track allows a response."""


class Resolved(NamedTuple):
    """References without repetition, and citations of each sentence into them.

    Attributes
    ----------
    references : distinct, in order.
    citations : indices into `references`, distinct in order, a tuple a sentence.
    unresolved : (sentence, index) of every citation that names no reference.
    merged : references that were the same as an earlier one.
    """

    references: tuple[str, ...]
    citations: tuple[tuple[int, ...], ...]
    unresolved: tuple[tuple[int, int], ...]
    merged: int

    def cited(self, sentence: int) -> list[str]:
        """The references that a sentence cites."""
        return [self.references[i] for i in self.citations[sentence]]


def resolve(references: Sequence[str], citations: Sequence[Sequence[int]]) -> Resolved:
    """Merge equal references and map the citations of each sentence to what is left."""
    place: dict[str, int] = {}
    moved = [place.setdefault(each, len(place)) for each in references]
    out, unresolved = [], []
    for sentence, indices in enumerate(citations):
        unresolved += [(sentence, i) for i in indices if not 0 <= i < len(moved)]
        kept = (moved[i] for i in indices if 0 <= i < len(moved))
        out.append(tuple(dict.fromkeys(kept)))
    return Resolved(tuple(place), tuple(out), tuple(unresolved), len(moved) - len(place))


def length(texts: Iterable[str]) -> int:
    """White-space tokens of a response's sentences after NFKC, as the track counts them."""
    return sum(len(unicodedata.normalize("NFKC", text).split()) for text in texts)
