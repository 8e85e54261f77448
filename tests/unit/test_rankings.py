"""Traces brought to the groups that judge them, against the rules told row by row."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from ragcore.errors import InputError
from ragcore.formats import arrow
from ragcore.measures.rankings import _groups_of, _numbered, _repeats, _twice
from ragcore.units import Vocabulary


class Groups:
    """As much of `Labels` as is asked for."""

    def __init__(self, case_of, lang_of):
        self.case_of, self.lang_of = np.array(case_of, np.int64), lang_of


def told(labels, found, lang):
    """The group of each trace and its language, by dictionaries."""
    group, langs_of = {}, {}
    for g, code in enumerate(labels.case_of.tolist()):
        language = labels.lang_of[g] if labels.lang_of else None
        group[code, language] = g
        langs_of.setdefault(code, []).append(language)
    out, own = [], []
    for code, language in zip(found, lang, strict=True):
        known = langs_of.get(code, [])
        if labels.lang_of is None or known == [None]:
            out.append(group.get((code, None), -1))
        elif language is None and len(known) == 1:
            language = known[0]
            out.append(group[code, language])
        else:
            out.append(group.get((code, language), -1))
        own.append(language)
    return out, own


@pytest.mark.parametrize("seed", range(60))
def test_groups__are_those_of_the_rules(seed):
    draw = random.Random(seed)
    known = draw.choice([[None], ["en"], [None, "en"], ["en", "zh", None]])
    pairs = list({(draw.randint(0, 6), draw.choice(known)) for _ in range(draw.randint(0, 9))})
    langs = None if seed % 5 == 0 else [lang for _, lang in pairs]
    cases = sorted({case for case, _ in pairs}) if langs is None else [case for case, _ in pairs]
    labels = Groups(cases, langs)
    found = [draw.randint(0, 8) for _ in range(20)]
    lang = [draw.choice(["en", "zh", "fr", None]) for _ in found]
    wanted, own = told(labels, found, lang)
    (groups, ours), n_langs = _numbered([langs or [None] * len(cases), lang])
    label_of, takes = _groups_of(labels, np.array(found), ours, groups, n_langs)
    assert label_of.tolist() == wanted
    words = langs or [None] * len(cases)
    after = [words[g] if t else one for g, t, one in zip(label_of, takes, lang, strict=True)]
    assert after == own


@pytest.mark.parametrize("keys", [[], [1], [1, 2, 3], [3, 1, 2], [1, 2, 1], [5, 4, 4, 5, 5]])
def test_twice__names_the_first_row_that_repeats(keys):
    seen, wanted = {}, None
    for row, key in enumerate(keys):
        if key in seen and wanted is None:
            wanted = row, seen[key]
        seen.setdefault(key, row)
    assert _twice(np.array(keys, np.int64)) == wanted


def test_repeats__beyond_int16_are_refused():
    assert _repeats(pa.table({"repeat": [0, None, 32767]}), "r") == [0, None, 32767]
    with pytest.raises(InputError, match="row 3: repeat 32768"):
        _repeats(pa.table({"repeat": [0, 1, 32768]}), "r")


def test_vocabulary__gives_equal_ids_equal_codes_in_any_layout():
    plain = pa.array(["b", None, "a", "b", "c"])
    for ids in (plain, plain.dictionary_encode(), plain.cast(pa.string_view()),
                pa.chunked_array([plain]).combine_chunks()):  # fmt: skip
        words = Vocabulary(None)
        assert words.codes(ids).tolist() == [0, -1, 1, 0, 2]
        assert words.codes(arrow.texts(["c", "z"])).tolist() == [2, 3]
        assert [words.name(code) for code in range(4)] == ["b", "a", "c", "z"]
    odd = pa.DictionaryArray.from_arrays(pa.array([1, 1, None]), pa.array(["a", None]))
    assert Vocabulary(None).codes(odd).tolist() == [-1, -1, -1]
