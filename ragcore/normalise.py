"""Ids in another Unicode form, on request: a copy, and collisions are refused."""

from __future__ import annotations

import unicodedata
from dataclasses import replace

import numpy as np
import pyarrow as pa

from ragcore.columns import Rows
from ragcore.errors import InputError
from ragcore.strings import Strings, as_text


def nfc(rows: Rows) -> Rows:
    """`rows` with every id in NFC.

    Raises
    ------
    InputError
        If two different ids become one.
    """
    return replace(
        rows,
        ids=_nfc(rows.ids, rows.where, "document"),
        case_ids=_nfc(rows.case_ids, rows.where, "case"),
    )


def _nfc(strings: Strings, where: str, what: str) -> Strings:
    Strings.of(strings.arrays, where)  # checked before Arrow reads them
    origin: dict[str, str] = {}
    arrays = []
    for array in strings.arrays:
        values = [as_text(v) for v in array.to_pylist()]
        for value in values:
            form = unicodedata.normalize("NFC", value)
            if origin.setdefault(form, value) != value:
                raise InputError(
                    where, f"{what} ids {origin[form]!r} and {value!r} are one in NFC",
                    "distinct ids", "rename one of them, or compare ids byte-wise (the default)",
                )  # fmt: skip
        arrays.append(pa.array([unicodedata.normalize("NFC", v) for v in values], pa.string()))
    out = Strings.of(arrays)
    if not np.array_equal(out.table[:, 0], strings.table[:, 0]):
        raise AssertionError("pieces changed their length")
    return out
