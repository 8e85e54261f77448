"""What of the questions an index knows: unknown terms, questions that can find nothing, and why.

BM25 matches terms exactly. A question none of whose terms is in the index comes back empty, which
looks like an index without an answer; this audit tells the two apart, before any search.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ragcore.analysis import Analyzer
from ragcore.errors import UsageError
from ragcore.text import has_unspaced, words

Lookup = Callable[[list[str]], ArrayLike]

NO_TOKENS = "no tokens"
STOP_WORDS = "only stop words"
UNKNOWN = "all terms unknown"
SCRIPT = "script mismatch: Chinese question against an index without CJK segmentation"
SINGLE = "single CJK character: the index holds pairs of characters"
REASONS = (NO_TOKENS, STOP_WORDS, UNKNOWN, SCRIPT, SINGLE)
NAMED = 5
"""Questions that find nothing and are named."""
_SCRIPT_EACH = 0.5  # share of letters that makes a question one of an unspaced script


@dataclass(frozen=True)
class Question:
    """One question against the vocabulary.

    Parameters
    ----------
    tokens : its tokens, repeated ones as often as they occur.
    known, unknown : the distinct ones of them that the index holds, and the others; in order.
    reason : why nothing can match, one of `REASONS`; "" if something does.
    """

    tokens: tuple[str, ...]
    known: tuple[str, ...]
    unknown: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Vocabulary:
    """The audit of a set of questions; every share comes with what it is a share of.

    Parameters
    ----------
    questions : one entry each, in order.
    n_tokens, n_unknown : tokens of all questions, repeated ones counted; those not in the index.
    n_terms, n_unknown_terms : distinct ones.
    reasons : for each reason that occurs, the questions that find nothing because of it.
    """

    questions: tuple[Question, ...]
    n_tokens: int
    n_unknown: int
    n_terms: int
    n_unknown_terms: int
    reasons: dict[str, int]

    @staticmethod
    def _named(name: str, question: Question) -> str:
        terms = f" ({' '.join(question.unknown[:3])})" if question.unknown else ""
        return f"{name}{terms}"

    @property
    def n_without_hit(self) -> int:
        """Questions for which the index can find nothing."""
        return sum(self.reasons.values())

    def lines(self, names: Sequence[str] | None = None) -> list[str]:
        """The findings in words; none if every token is known and every question can match.

        Parameters
        ----------
        names : of the questions, in order; the first of those that find nothing are then named.
        """
        out: list[str] = []
        if self.n_unknown:
            out.append(
                f"{_share(self.n_unknown, self.n_tokens)} of query tokens are out of vocabulary "
                f"({self.n_unknown:,} of {self.n_tokens:,}; {self.n_unknown_terms:,} of "
                f"{self.n_terms:,} distinct terms)"
            )
        if self.n_without_hit:
            n = len(self.questions)
            why = "; ".join(f"{reason}: {count:,}" for reason, count in self.reasons.items())
            out.append(
                f"{_share(self.n_without_hit, n)} of questions find nothing "
                f"({self.n_without_hit:,} of {n:,}): {why}"
            )
            if names is not None:
                lost = [i for i, question in enumerate(self.questions) if question.reason]
                shown = [self._named(names[i], self.questions[i]) for i in lost[:NAMED]]
                more = f", and {len(lost) - NAMED:,} more" if len(lost) > NAMED else ""
                out.append(f"nothing for {', '.join(shown)}{more}")
        return out


def audit(
    questions: Sequence[str | None],
    analyzer: Analyzer,
    known: Lookup,
    *,
    segmented: bool | None = None,
) -> Vocabulary:
    """Which terms of the questions the index knows.

    Parameters
    ----------
    questions : their texts; None counts as empty.
    analyzer : the one that the questions are searched with.
    known : called once with the distinct terms; says for each whether a passage holds it.
    segmented : whether the index cuts scripts without spaces into words or bigrams; by default as
        `analyzer` does.

    Raises
    ------
    UsageError
        If `known` does not give one answer a term.
    """
    if segmented is None:
        segmented = analyzer.segmenter != "none"
    lists = [line.split() for line in analyzer.batch(questions)]
    counts = Counter(token for tokens in lists for token in tokens)
    terms = list(counts)
    answers = np.asarray(known(terms) if terms else [], dtype=np.bool_)
    if answers.shape != (len(terms),):
        raise UsageError(f"the lookup gave {answers.shape} answers for {len(terms):,} terms")
    holds = dict(zip(terms, answers.tolist(), strict=True))
    entries = tuple(
        _question(text or "", tokens, holds, segmented)
        for text, tokens in zip(questions, lists, strict=True)
    )
    found = Counter(entry.reason for entry in entries if entry.reason)
    return Vocabulary(
        entries,
        n_tokens=counts.total(),
        n_unknown=sum(n for term, n in counts.items() if not holds[term]),
        n_terms=len(terms),
        n_unknown_terms=len(terms) - int(answers.sum()),
        reasons={reason: found[reason] for reason in REASONS if reason in found},
    )


def _question(text: str, tokens: list[str], holds: dict[str, bool], segmented: bool) -> Question:
    distinct = list(dict.fromkeys(tokens))
    known = tuple(term for term in distinct if holds[term])
    unknown = tuple(term for term in distinct if not holds[term])
    if known:
        reason = ""
    elif not tokens:
        reason = STOP_WORDS if words(text) else NO_TOKENS
    elif not segmented and _mostly_unspaced(text):
        reason = SCRIPT
    elif segmented and all(len(token) == 1 and has_unspaced(token) for token in tokens):
        reason = SINGLE
    else:
        reason = UNKNOWN
    return Question(tuple(tokens), known, unknown, reason)


def _mostly_unspaced(text: str) -> bool:
    """Whether at least half of the letters of `text` are of scripts without spaces."""
    letters = [c for word in words(text, unspaced=False) for c in word if c.isalpha()]
    return sum(map(has_unspaced, letters)) >= _SCRIPT_EACH * len(letters) > 0


def _share(part: int, whole: int) -> str:
    """A percentage; 0 % and 100 % only for none and all."""
    if part in (0, whole):
        return "100%" if part else "0%"
    tenths = min(max(round(1000 * part / whole), 1), 999)
    return f"{tenths / 10:g}%"
