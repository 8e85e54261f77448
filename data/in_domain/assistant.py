"""A small assistant that copies: it answers with sentences of its context, word for word.

It sees a question and the chunks that a search put into the context, and no label. It is a
baseline with known weaknesses: it knows words and not meanings, so that a question in other words
than its evidence is left unanswered; it looks at no date and no version; it takes a twin for a
confirmation; it never escalates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ragcore.answers.sentences import sentences
from ragcore.wording import content_words

VERSION = "1"
MOST = 3
"""Sentences of an answer."""
BAR = 0.25
"""Share of the question's content words, by weight of rank, that the best sentence must have."""
CLOSE = 0.75
"""Share of the best sentence's score that each further sentence must have."""
ALIKE = 0.6
"""Share of a sentence's content words by which a sentence of another chunk confirms it."""
STEP = 0.1
"""What a place further down in the context costs: the first chunk weighs 1, the next 0.9."""
FEWEST = 2
"""Words that a sentence must share with the question."""

Chunk = dict[str, Any]
"""A row of `chunks.arrow`."""


@dataclass(frozen=True)
class Sentence:
    """A sentence of a chunk of the context.

    Attributes
    ----------
    chunk, place : the chunk, and its place in the context from 0.
    start, end : code points within the chunk, end exclusive.
    """

    chunk: Chunk
    place: int
    start: int
    end: int

    @property
    def text(self) -> str:
        """As it stands in the chunk."""
        return self.chunk["text"][self.start : self.end]


@dataclass(frozen=True)
class Claim:
    """A sentence that the answer gives, and the sentences that it cites: itself first."""

    sentence: Sentence
    cited: tuple[Sentence, ...]


def answer(question: str, context: list[Chunk]) -> tuple[Claim, ...]:
    """What the assistant says; nothing where it abstains.

    The sentences that share most content words with the question, in the order of the context.
    """
    asked = content_words(question)
    found = [
        Sentence(chunk, place, start, end)
        for place, chunk in enumerate(context)
        for start, end in sentences(chunk["text"])
    ]
    scored = sorted(
        ((-_score(asked, one), one.place, one.start, one) for one in found),
        key=lambda entry: entry[:3],
    )
    if not scored or -scored[0][0] < BAR:
        return ()
    least = max(BAR, CLOSE * -scored[0][0])
    chosen = [one for score, _, _, one in scored[:MOST] if -score >= least]
    chosen.sort(key=lambda one: (one.place, one.start))
    return tuple(Claim(one, (one, *_confirmed(one, found))) for one in chosen)


def _score(asked: frozenset[str], one: Sentence) -> float:
    """Share of the question's words that a sentence has, less by its place; 0 for too few."""
    shared = len(asked & content_words(one.text))
    return 0.0 if shared < FEWEST else (1 - STEP * one.place) * shared / len(asked)


def _confirmed(claim: Sentence, found: list[Sentence]) -> tuple[Sentence, ...]:
    """The sentence of another chunk that is most like a claim, if any is alike."""
    own = content_words(claim.text)
    others = [one for one in found if one.place != claim.place]
    alike = [(len(own & content_words(one.text)), one) for one in others]
    most, best = max(alike, key=lambda pair: pair[0], default=(0, claim))
    return (best,) if own and most >= ALIKE * len(own) else ()
