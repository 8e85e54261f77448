"""Judgments beside the rankings of one run: how a verdict finds its ranking."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore.formats.compute import pc
from ragcore.judgments import Judgments
from ragcore.lists import integers
from ragcore.units import Vocabulary
from ragcore_kernels import verdicts as kernel
from ragcore_kernels.layout import I64, frozen


@dataclass
class Matching:
    """How the rankings of one run are found from a verdict: see `ragcore_kernels.verdicts.settle`.

    Attributes
    ----------
    run : its name.
    case_ids, case_codes : ids of the suite's cases, and the code of each.
    case_of : (n,), code of each ranking's case.
    lang, repeat : of each ranking, or None.
    needed : (n,) int8, the rung that its case requires.
    """

    run: str
    case_ids: pa.Array
    case_codes: I64
    case_of: I64
    lang: list[str | None] | None
    repeat: list[int | None] | None
    needed: Any


@dataclass
class Side:
    """Judgments of one form, plain or packed, and their codes brought to those of the rankings.

    Attributes
    ----------
    given : the judgments.
    unit : codes of the chunks that verdicts were given, flat.
    case_code, lang_code : by code in `given`, that of the rankings, -1 for unknown; the last entry
        of the first is for what no case has.
    own_run : code in `given` of the run, -2 if they never name it.
    rank : (n,) int8, as `ragcore_kernels.verdicts.rank_of` makes it.
    """

    given: Judgments
    unit: I64
    case_code: I64
    lang_code: I64
    own_run: int
    rank: Any


def side_of(
    given: Judgments, match: Matching, vocabulary: Vocabulary, langs: dict[str | None, int],
    declared: str,
) -> Side:  # fmt: skip
    """Bring judgments to the rankings of `match`.

    Parameters
    ----------
    langs : codes of the rankings' languages.
    declared : the judge that counts among equals, "" for none.
    """
    names = given.names
    if given.offsets is not None:  # one kind of array for the kernels, wherever it comes from
        given.offsets = frozen(given.offsets, np.int64)
        given.values = frozen(given.values, np.int8)
    places = integers(
        pc.index_in(names["case"].cast(pa.large_string()), value_set=match.case_ids),
        len(names["case"]),
    )
    lang_code = [langs.get(word, -1) for word in names["lang"].to_pylist()]
    own, judge = names["run"].index(match.run).as_py(), names["judge"].index(declared).as_py()
    rank = kernel.rank_of(given.adjudicated, given.rung, (given.judge == judge) & (judge >= 0))
    return Side(
        given, vocabulary.codes(given.evidence.items),
        np.append(match.case_codes, -1)[places],  # the last for what is unknown
        np.array(lang_code or [-1], np.int64), own if own >= 0 else -2, rank,
    )  # fmt: skip


def numbers_of(values: list[Any] | None, n: int, code: Callable[[Any], int]) -> I64:
    """(n,), the code of each value; -1 throughout if there are none."""
    if values is None:
        return np.full(n, -1, np.int64)
    known = {value: code(value) for value in set(values)}
    if len(known) == 1:
        return np.full(n, next(iter(known.values())), np.int64)
    return np.fromiter((known[value] for value in values), np.int64, n)
