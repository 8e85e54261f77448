"""Whether a query keeps what a question insists on: its models, numbers and negations."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

_NEGATIONS = {
    "en": re.compile(r"\b(?:no|not|without|never|none|neither|nor|cannot|except)\b|n't\b", re.I),
    "zh": re.compile(r"没有|[不无未勿非]"),
}
_NAMED = re.compile(r"[A-Za-z]*\d+(?:[.,]\d+)*[A-Za-z]*")
"""Words with a digit: models, codes, amounts, years."""


def keeps(question: str, query: str, lang: str | None) -> bool:
    """Whether every word with a digit of the question is in the query, and no negation fewer.

    Words are compared without case. Negations are counted in English and Chinese; in other
    languages only the words with a digit speak.
    """
    wanted, got = (Counter(_words(text)) for text in (question, query))
    if any(word not in got for word in wanted):
        return False
    negation = _NEGATIONS.get((lang or "en").split("-")[0].lower())
    if negation is None:
        return True
    return len(negation.findall(question)) <= len(negation.findall(query))


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _NAMED.findall(text)]


def kept(
    questions: Sequence[str | None], queries: Sequence[str | None], langs: Sequence[str | None]
) -> list[bool | None]:
    """`keeps` of each pair; None where a text is not recorded. Equal texts keep everything."""
    return [
        None if question is None or query is None else
        question == query or keeps(question, query, lang)
        for question, query, lang in zip(questions, queries, langs, strict=True)
    ]  # fmt: skip
