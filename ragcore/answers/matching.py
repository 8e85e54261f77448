"""Whether a prediction says what a reference says, by surface: equality, containment, token F1.

Nothing here is a grounding argument: it says how alike two strings are. Counts are integers, so
that a share can be summed and pooled exactly; 0/0 is `na` and never 0 nor 1.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ragcore.answers import normal
from ragcore.answers.normal import Form
from ragcore.errors import UsageError

By = Literal["f1", "precision", "recall"]
"""What a reference is chosen by, and which share is given."""

UNKNOWN = -1
"""In a batch: no prediction was recorded, or the case has no reference."""

References = Sequence[str]


class Share(NamedTuple):
    """A share as two counts; the value of 0/0 is NaN, which stands for `na`."""

    numerator: int
    denominator: int

    @property
    def value(self) -> float:
        """Numerator / denominator, correctly rounded."""
        return self.numerator / self.denominator if self.denominator else math.nan


class Overlap(NamedTuple):
    """Tokens that two texts have in common, each as often as in both, and how many each has."""

    common: int
    predicted: int
    expected: int

    def share(self, by: By = "f1") -> Share:
        """F1 = 2 common / (predicted + expected), precision or recall."""
        if by == "f1":
            return Share(2 * self.common, self.predicted + self.expected)
        return Share(self.common, self.predicted if by == "precision" else self.expected)


# --- one prediction


def exact(prediction: str, references: References) -> bool:
    """Strict: the prediction is one of the references, code point by code point."""
    return any(prediction == each for each in references)


def exact_normalised(
    prediction: str, references: References, lang: str | None = None, *, form: Form = "house"
) -> bool:
    """The prediction and a reference have the same normal form (see `normal`)."""
    if form == "squad":
        found = normal.squad(prediction)
        return any(found == normal.squad(each) for each in references)
    found = normal.normal(prediction, lang)
    return any(found == normal.normal(each, lang) for each in references)


def overlap(
    prediction: str, reference: str, lang: str | None = None, *, form: Form = "house"
) -> Overlap:
    """Common tokens of a prediction and one reference (`normal.tokens`)."""
    return _overlap(
        normal.tokens(prediction, lang, form=form), normal.tokens(reference, lang, form=form)
    )


def best(
    prediction: str,
    references: References,
    by: By = "f1",
    lang: str | None = None,
    *,
    form: Form = "house",
) -> Share:
    """The greatest share over the references; of equals the first. 0/0 without any reference."""
    predicted = normal.tokens(prediction, lang, form=form)
    found = Share(0, 0)
    for each in references:
        share = _overlap(predicted, normal.tokens(each, lang, form=form)).share(by)
        if not found.denominator or (
            share.numerator * found.denominator > found.numerator * share.denominator
        ):
            found = share if share.denominator else found
    return found


def squad_f1(prediction: str, references: References) -> float:
    """SQuAD's official F1: max over the references; if either side has no token, whether both do.

    That last rule is of version 2.0. No reference at all is NaN.
    """
    values = []
    for each in references:
        share = overlap(prediction, each, form="squad").share()
        values.append(share.value if share.denominator else 1.0)
    return max(values, default=math.nan)


def contains(text: str, references: References, lang: str | None = None) -> bool:
    """Whether the tokens of a reference stand in `text` one after the other.

    Punctuation inside words is read both ways, so that "US" is found in "the U.S. army" and "known"
    in "well-known". A reference without tokens is never contained. What matches exactly when
    normalised is contained.
    """
    joined = normal.tokens(text, lang)
    parted: list[str] | None = None
    for each in references:
        if _stands_in(normal.tokens(each, lang), joined):
            return True
        if parted is None:
            parted = normal.tokens(text, lang, parted=True)
        if _stands_in(normal.tokens(each, lang, parted=True), parted):
            return True
    return False


_NEITHER = re.compile(r"[^a-z0-9]+")


class Contained:
    """Which of some strings texts contain, as `contains` says, for many texts.

    A text in ASCII that lacks the letters of a token is not parted into tokens itself.
    """

    def __init__(self) -> None:
        self._keys: dict[tuple[str, str | None], list[str]] = {}

    def __call__(self, text: str, strings: Sequence[str], lang: str | None = None) -> list[str]:
        """Those of `strings` that `text` contains."""
        bare = _NEITHER.sub("", text.lower()) if text.isascii() else None
        return [
            one for one in strings
            if (bare is None or all(key in bare for key in self._of(one, lang)))
            and contains(text, [one], lang)
        ]  # fmt: skip

    def _of(self, one: str, lang: str | None) -> list[str]:
        """Letters and digits of each token, which stand in whatever contains it."""
        found = self._keys.get((one, lang))
        if found is None:
            words = normal.tokens(one, lang, parted=True)
            found = [_NEITHER.sub("", word) for word in words if word.isascii()]
            self._keys[one, lang] = found
        return found


# --- many predictions


def exact_batch(
    predictions: Sequence[str | None],
    references: Sequence[References],
    lang: str | None = None,
    *,
    strict: bool = False,
    form: Form = "house",
) -> NDArray[np.int8]:
    """1 for a match, 0 for none, `UNKNOWN` without prediction or references; (n,).

    Raises
    ------
    UsageError
        If there are not as many lists of references as predictions.
    """

    def match(prediction: str, references: References) -> bool:
        if strict:
            return exact(prediction, references)
        return exact_normalised(prediction, references, lang, form=form)

    return _flags(predictions, references, match)


def contains_batch(
    texts: Sequence[str | None], references: Sequence[References], lang: str | None = None
) -> NDArray[np.int8]:
    """1 where a text contains one of its references, else 0 or `UNKNOWN`; see `exact_batch`."""
    return _flags(texts, references, lambda text, wanted: contains(text, wanted, lang))


def best_batch(
    predictions: Sequence[str | None],
    references: Sequence[References],
    by: By = "f1",
    lang: str | None = None,
    *,
    form: Form = "house",
) -> NDArray[np.int64]:
    """Numerator and denominator of `best`; (n, 2).

    0/0 is `na`: neither side has a token, or there are no references. -1/0 is `missing`: no
    prediction was recorded.
    """
    out = np.zeros((_paired(predictions, references), 2), np.int64)
    for row, (prediction, wanted) in enumerate(zip(predictions, references, strict=True)):
        if prediction is None:
            out[row, 0] = UNKNOWN
        else:
            out[row] = best(prediction, wanted, by, lang, form=form)
    return out


# --- parts


def _overlap(predicted: list[str], expected: list[str]) -> Overlap:
    common = Counter(predicted) & Counter(expected)
    return Overlap(common.total(), len(predicted), len(expected))


def _stands_in(part: list[str], whole: list[str]) -> bool:
    if not part or len(part) > len(whole):
        return False
    n, start = len(part), -1
    last = len(whole) - n
    while True:
        try:
            start = whole.index(part[0], start + 1, last + 1)
        except ValueError:
            return False
        if whole[start : start + n] == part:
            return True


def _flags(
    predictions: Sequence[str | None],
    references: Sequence[References],
    match: Callable[[str, References], bool],
) -> NDArray[np.int8]:
    out = np.full(_paired(predictions, references), UNKNOWN, np.int8)
    for row, (prediction, wanted) in enumerate(zip(predictions, references, strict=True)):
        if prediction is not None and len(wanted):
            out[row] = match(prediction, wanted)
    return out


def _paired(predictions: Sequence[str | None], references: Sequence[References]) -> int:
    if len(predictions) != len(references):
        raise UsageError(
            f"{len(predictions)} predictions, but {len(references)} lists of references",
            "give one list of references a prediction; an empty list says that there are none",
        )
    for row, wanted in enumerate(references):
        if isinstance(wanted, str):
            raise UsageError(
                f"row {row}: references are one string, {wanted[:40]!r}",
                "put it into a list: each character would be taken for a reference",
            )
    return len(predictions)
