"""Dictionary-coded documents: judged ids become codes of the run's own dictionary.

Then the kernels compare words of 4 bytes that lie in the row's order, instead of strings that lie
all over the dictionary, which costs a cache miss or two a row.
"""

from __future__ import annotations

import numpy as np

from ragcore.columns import CaseCodes
from ragcore.strings import Strings
from ragcore.threads import run_split
from ragcore_kernels import dictionary as kernel
from ragcore_kernels import layout
from ragcore_kernels.layout import I64

WORTH_ROWS = 200_000  # below this, comparing strings is quicker than preparing codes


def as_words(run: Strings, judged: Strings, threads: int) -> tuple[I64, I64, list[object]] | None:
    """Piece tables of both columns as words, equal where the ids are, and what to keep alive.

    None where that cannot be done or is not worth it: the run is not coded by one dictionary,
    or an id stands twice in it (which Arrow allows).
    """
    values = run.dictionary
    if values is None or int(run.table[:, layout.ROWS].sum()) < WORTH_ROWS:
        return None
    column = Strings.of([values])
    hashes = np.empty(len(values), np.uint64)
    run_split(lambda a, b: kernel.hash_all(column.table, a, b, hashes), len(values), threads)
    if kernel.any_repeat(hashes, np.empty_like(hashes)):
        return None
    sizes = judged.table[:, layout.ROWS]
    places = np.empty((int(sizes.sum()), 2), np.int64)
    places[:, 0] = np.repeat(np.arange(len(sizes)), sizes)
    places[:, 1] = np.arange(len(places)) - np.repeat(judged.table[:, layout.BASE], sizes)
    known = CaseCodes(len(places))
    codes = known.add(judged, places)
    found = np.full(known.count, -1, np.int64)
    run_split(
        lambda a, b: kernel.find_keys(
            column.table, hashes, a, b, known.slots, known.keys, found
        ),
        len(values), threads,
    )  # fmt: skip
    # An id that the dictionary lacks gets a word of its own, beyond all codes.
    lost = found < 0
    found[lost] = -2 - np.arange(int(lost.sum()))
    words = found[codes].astype(np.int32)
    run_table = run.table.copy()
    run_table[:, layout.KIND] = layout.WORDS
    judged_table = judged.table.copy()
    judged_table[:, layout.KIND] = layout.WORDS
    judged_table[:, layout.FIRST] = words.ctypes.data + 4 * judged_table[:, layout.BASE]
    return run_table, judged_table, [words]
