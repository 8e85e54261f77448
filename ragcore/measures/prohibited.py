"""What a case prohibits and a trace has all the same: effects by name, strings by their tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore.answers.matching import Contained
from ragcore.formats.compute import pc
from ragcore.lists import integers
from ragcore.measures.answer_text_values import answers, lists_at, picked
from ragcore.measures.inputs import Inputs
from ragcore_kernels.layout import I64


@dataclass
class Found:
    """What was prohibited and occurred.

    Attributes
    ----------
    counts : (n,), how often in each ranking.
    words : by ranking, those with any alone: what it was, each once, in order.
    """

    counts: I64
    words: dict[int, list[str]]


def prohibited_effects(inputs: Inputs) -> Found:
    """Attempted effects whose name is one that the case prohibits, as often as attempted."""
    return inputs.once("prohibited effects", lambda: _effects(inputs))


def _effects(inputs: Inputs) -> Found:
    done, banned = inputs.trace_lists("effects"), inputs.case_lists("prohibited")
    if len(done.items) == 0 or len(banned.items) == 0:
        return Found(np.zeros(inputs.n, np.int64), {})
    words = [lists.items.cast(pa.large_string()) for lists in (done, banned)]
    known = pa.concat_arrays(words).unique()
    keys = []
    for lists, texts in zip((done, banned), words, strict=True):
        codes = integers(pc.index_in(texts, value_set=known), len(texts))
        keys.append(np.where(np.asarray(texts.is_null()), -1, lists.owners * len(known) + codes))
    hit = np.flatnonzero(np.isin(keys[0], keys[1]) & (keys[0] >= 0))
    owners, names = done.owners[hit], picked(words[0], hit)
    found: dict[int, list[str]] = {}
    for row, name in sorted(set(zip(owners.tolist(), names, strict=True))):
        found.setdefault(row, []).append(name)
    return Found(np.bincount(owners, minlength=inputs.n), found)


def prohibited_claims(inputs: Inputs) -> Found:
    """Distinct prohibited strings whose tokens stand in the answer; see `matching.contains`.

    Width, case and punctuation are folded, and numbers are whole: "750" is not in "1750".
    """
    return inputs.once("prohibited claims", lambda: _claims(inputs))


def _claims(inputs: Inputs) -> Found:
    said, found = answers(inputs), dict[int, list[str]]()
    counts, contained = np.zeros(inputs.n, np.int64), Contained()
    if said is None:
        return Found(counts, found)
    banned, langs = inputs.case_lists("prohibited"), inputs.langs
    known: Any = said.known & np.asarray(said.texts.is_valid())
    rows = np.flatnonzero(known & (banned.counts > 0))
    for row, text, words in zip(
        rows.tolist(), picked(said.texts, rows), lists_at(banned, rows), strict=True
    ):
        hit = contained(text, sorted({word for word in words if word}), langs[row])
        if hit:
            counts[row], found[row] = len(hit), hit
    return Found(counts, found)
