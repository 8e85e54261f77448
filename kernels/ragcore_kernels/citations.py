"""Citations followed to what they cite: units shown, quotes in texts, spans in labels."""

from __future__ import annotations

from typing import Any

from ragcore_kernels._jit import inline, kernel, load_u8
from ragcore_kernels.layout import I64

UNKNOWN, NO, YES = -1, 0, 1
"""What a check says: it could not be made, it failed, it passed."""
NO_PLACE = -1
"""Start and end of a citation that names none."""
WHOLE_END = 1 << 60
"""End of a citation of a whole unit whose text nobody has."""


@kernel
def resolve_documents(
    begin: int, end: int, owner: I64, document: I64, first: I64, last: I64, shown: I64,
    units: I64, starts: I64, rows: I64, heads: I64, tails: I64, unit: I64,
) -> None:  # fmt: skip
    """The unit that a citation of a document means: one with its place, best one that was shown.

    Parameters
    ----------
    begin, end : citations to do.
    owner : (n_citations,), ranking of each.
    document : (n_citations,), code of the document, -1 to leave a citation as it is.
    first, last : (n_citations,), code points in the document, or `NO_PLACE`.
    shown, units : (n_rankings + 1,) and flat, codes of the units in each context.
    starts, rows : (n_documents + 1,) and flat, the units of each document.
    heads, tails : (n_units,), code points that each unit covers.
    unit : (n_citations,), filled where a document is given and has units.
    """
    for c in range(begin, end):
        code = document[c]
        if code < 0:
            continue
        best = -1
        for k in range(starts[code], starts[code + 1]):
            row = rows[k]
            merit = 0
            if first[c] < 0 or (heads[row] <= first[c] and last[c] <= tails[row]):
                merit = 2
            ranking = owner[c]
            for place in range(shown[ranking], shown[ranking + 1]):
                if units[place] == row:
                    merit += 1
                    break
            if merit > best:
                best = merit
                unit[c] = row


@kernel
def find_shown(
    begin: int, end: int, owner: I64, unit: I64, shown: I64, units: I64, out: Any
) -> None:
    """Whether each cited unit is in its ranking's list.

    Parameters
    ----------
    begin, end : citations to do.
    owner, unit : (n_citations,), ranking, and code of the unit or -1.
    shown, units : (n_rankings + 1,) and flat, codes of the units of each list.
    out : (n_citations,) int8, filled with `YES` or `NO`.
    """
    for c in range(begin, end):
        out[c] = NO
        for place in range(shown[owner[c]], shown[owner[c] + 1]):
            if unit[c] >= 0 and units[place] == unit[c]:
                out[c] = YES
                break


@inline
def _step(text: int, at: int, stop: int, count: int) -> int:
    """The byte `count` code points after byte `at`; -1 if the text ends before."""
    left = count
    while left > 0:
        if at >= stop:
            return -1
        at += 1
        while at < stop and (load_u8(text + at) & 0xC0) == 0x80:
            at += 1
        left -= 1
    return at


@inline
def _length(text: int, start: int, stop: int) -> int:
    """Code points between two bytes."""
    total = 0
    for at in range(start, stop):
        if (load_u8(text + at) & 0xC0) != 0x80:
            total += 1
    return total


@inline
def _equal(one: int, other: int, size: int) -> bool:
    """Whether `size` bytes at two addresses are the same."""
    at = 0
    while at < size and load_u8(one + at) == load_u8(other + at):
        at += 1
    return at >= size


@inline
def find_bytes(text: int, start: int, stop: int, needle: int, size: int) -> int:
    """First byte at or after `start` at which `needle` stands; -1 for nowhere."""
    if size == 0:
        return start if start <= stop else -1
    head = load_u8(needle)
    for at in range(start, stop - size + 1):
        if load_u8(text + at) == head and _equal(text + at, needle, size):
            return at
    return -1


@kernel
def locate(
    begin: int, end: int, wanted: Any, unit: I64, first: I64, last: I64, said: Any, texts: I64,
    text: int, quotes: I64, quote: int, out: Any, low: I64, high: I64,
) -> None:  # fmt: skip
    """Find what each citation cites in the text of its unit, and hold its quote against it.

    With a place and a quote the text there must be the quote, byte for byte. A place alone must
    lie in the text; a quote alone must stand somewhere in it; with neither, the whole is cited.

    Parameters
    ----------
    begin, end : citations to do.
    wanted : (n_citations,) int8, 0 to leave a citation alone.
    unit : (n_citations,), row of the unit.
    first, last : (n_citations,), code points in the unit's text, or `NO_PLACE`; a place before
        the text is any other negative number.
    said : (n_citations,) int8, whether there is a quote.
    texts, text : (n_units + 1,) byte offsets of the texts, and their address.
    quotes, quote : (n_citations + 1,) byte offsets of the quotes, and their address.
    out : (n_citations,) int8, filled with `YES` or `NO`.
    low, high : (n_citations, 2), bytes and code points in the unit's text, filled where `YES`.
    """
    for c in range(begin, end):
        if not wanted[c]:
            continue
        here = texts[unit[c]]
        stop = texts[unit[c] + 1]
        size = quotes[c + 1] - quotes[c]
        out[c] = NO
        if first[c] != NO_PLACE:
            if first[c] < 0 or last[c] < first[c]:
                continue
            start = _step(text, here, stop, first[c])
            finish = -1 if start < 0 else _step(text, start, stop, last[c] - first[c])
            if finish < 0:
                continue
            differs = finish - start != size or not _equal(text + start, quote + quotes[c], size)
            if said[c] and differs:
                continue
            low[c, 1] = first[c]
            high[c, 1] = last[c]
        elif said[c]:
            start = find_bytes(text, here, stop, quote + quotes[c], size)
            if start < 0:
                continue
            finish = start + size
            low[c, 1] = _length(text, here, start)
            high[c, 1] = low[c, 1] + _length(text, start, finish)
        else:
            start = here
            finish = stop
            low[c, 1] = 0
            high[c, 1] = _length(text, here, stop)
        out[c] = YES
        low[c, 0] = start
        high[c, 0] = finish


@kernel
def spans_inside(
    begin: int, end: int, owner: I64, unit: I64, label_of: I64, items: I64, serves: Any,
    covers: I64, containing: I64, first: I64, last: I64, quotes: I64, quote: int, low: I64,
    high: I64, whole: Any, usable: Any, spans: I64, span: int, out: Any,
) -> None:  # fmt: skip
    """Whether a labelled supporting span of the cited unit lies inside what is cited.

    An item without a place is inside where its quote stands in the cited text, or where the whole
    unit is cited; with neither place nor quote nobody knows.

    Parameters
    ----------
    begin, end : citations to do.
    owner, unit : (n_citations,), ranking, and code of the unit or -1.
    label_of : (n_rankings,), row of each ranking's case, -1 for none.
    items : (n_cases + 1,), items of evidence of each case.
    serves : (n_items,) int8, whether an item supports.
    covers, containing : (n_items + 1,) and flat, codes of the units that contain an item.
    first, last : (n_items,), code points in the document, -1 where not said.
    quotes, quote : (n_items + 1,) byte offsets and address of the quotes, empty where not said.
    low, high : (n_citations,), code points in the document that are cited; -1 where unknown.
    whole : (n_citations,) int8, whether the whole unit is cited.
    usable : (n_citations,) int8, whether the cited text is known.
    spans, span : (n_citations + 1,) byte offsets and address of the cited texts.
    out : (n_citations,) int8, filled with `YES`, `NO` or `UNKNOWN`.
    """
    for c in range(begin, end):
        out[c] = NO
        label = label_of[owner[c]]
        if label < 0:
            out[c] = UNKNOWN
            continue
        for item in range(items[label], items[label + 1]):
            if not serves[item]:
                continue
            own = False
            for k in range(covers[item], covers[item + 1]):
                if unit[c] >= 0 and containing[k] == unit[c]:
                    own = True
            if not own:
                continue
            if whole[c]:
                out[c] = YES
                break
            size = quotes[item + 1] - quotes[item]
            if low[c] >= 0 and first[item] >= 0 and last[item] >= 0:
                inside = low[c] <= first[item] and last[item] <= high[c]
            elif usable[c] and size > 0:
                at = find_bytes(span, spans[c], spans[c + 1], quote + quotes[item], size)
                inside = at >= 0
            else:
                out[c] = UNKNOWN
                continue
            if inside:
                out[c] = YES
                break


@kernel
def contained(
    begin: int, end: int, owner: I64, pieces: I64, piece: int, cites: I64, usable: Any,
    spans: I64, span: int, out: Any,
) -> None:  # fmt: skip
    """Whether each piece of an answer stands in something that the answer cites.

    Parameters
    ----------
    begin, end : pieces to do.
    owner : (n_pieces,), ranking of each.
    pieces, piece : (n_pieces + 1,) byte offsets and address of their text.
    cites : (n_rankings + 1,), citations of each ranking.
    usable : (n_citations,) int8, whether the cited text is known.
    spans, span : (n_citations + 1,) byte offsets and address of the cited texts.
    out : (n_pieces,) int8, filled with `YES` or `NO`.
    """
    for p in range(begin, end):
        size = pieces[p + 1] - pieces[p]
        out[p] = NO
        for c in range(cites[owner[p]], cites[owner[p] + 1]):
            if usable[c] and find_bytes(span, spans[c], spans[c + 1], piece + pieces[p], size) >= 0:
                out[p] = YES
                break
