"""Whether a text holds a value: its numbers as numbers, anything else as whole words."""

from __future__ import annotations

from typing import Any

from ragcore_kernels._jit import inline, kernel, load_u8
from ragcore_kernels.citations import NO, YES, find_bytes
from ragcore_kernels.layout import I64

_DOT, _COMMA, _MINUS, _ZERO = 46, 44, 45, 48


@inline
def _digit(text: int, at: int, stop: int) -> bool:
    """Whether a digit stands at `at`."""
    return at < stop and 48 <= load_u8(text + at) <= 57


@inline
def _letter(text: int, at: int, stop: int) -> bool:
    """Whether a letter of a script that parts its words by spaces begins at `at`."""
    if at >= stop:
        return False
    head = load_u8(text + at)
    if head < 0x80:
        return 65 <= head <= 90 or 97 <= head <= 122
    if 0xC3 <= head < 0xE0:  # two bytes: Latin, Greek, Cyrillic and their like
        tail = load_u8(text + at + 1) if at + 1 < stop else 0
        return not (head == 0xC3 and (tail == 0x97 or tail == 0xB7))  # the signs of arithmetic
    return head == 0xE0 or head == 0xE1  # up to U+1FFF


@inline
def _letter_before(text: int, start: int, at: int) -> bool:
    """Whether the character before `at` is such a letter."""
    back = at - 1
    while back > start and (load_u8(text + back) & 0xC0) == 0x80:
        back -= 1
    return back >= start and at > start and _letter(text, back, at)


@inline
def next_number(text: int, start: int, at: int, stop: int) -> tuple[int, int]:
    """First and last byte (exclusive) of the next number from `at` on; -1 without one.

    Digits after a letter (``V8``) are part of a name. A dot or comma between digits is part of
    the number.
    """
    while at < stop:
        if not _digit(text, at, stop):
            at += 1
            continue
        finish = at + 1
        while _digit(text, finish, stop) or (
            finish < stop
            and (load_u8(text + finish) == _DOT or load_u8(text + finish) == _COMMA)
            and _digit(text, finish + 1, stop)
        ):
            finish += 1
        if not _letter_before(text, start, at):
            return at, finish
        at = finish
    return -1, -1


@inline
def _negative(text: int, start: int, at: int) -> bool:
    """Whether the number at `at` has a sign: a minus that does not stand between two things."""
    if at <= start or load_u8(text + at - 1) != _MINUS:
        return False
    return not (
        at - 2 >= start
        and (_digit(text, at - 2, at) or _letter_before(text, start, at - 1))
    )  # fmt: skip


@inline
def _groups(text: int, at: int, stop: int) -> bool:
    """Whether the comma at `at` only groups digits: three follow, and no more."""
    if not (_digit(text, at + 1, stop) and _digit(text, at + 2, stop)):
        return False
    return _digit(text, at + 3, stop) and not _digit(text, at + 4, stop)


@inline
def _skip(text: int, at: int, stop: int) -> int:
    """`at`, or the place after a comma that only groups."""
    if at < stop and load_u8(text + at) == _COMMA and _groups(text, at, stop):
        return at + 1
    return at


@inline
def _is_tail_of_zeros(text: int, at: int, stop: int, dots: int) -> bool:
    """Whether what is left of a number adds nothing: no fraction, or zeros of one."""
    if at < stop and dots == 0:
        if load_u8(text + at) != _DOT:
            return False
        at += 1
        dots = 1
    if at < stop and dots != 1:
        return False
    while at < stop and load_u8(text + at) == _ZERO:
        at += 1
    return at >= stop


@inline
def same_number(one: int, a: int, a_stop: int, other: int, b: int, b_stop: int) -> bool:
    """Whether two numbers are the same: ``1,500.0`` is ``1500``, ``07`` is ``7``."""
    while a + 1 < a_stop and load_u8(one + a) == _ZERO and _digit(one, a + 1, a_stop):
        a += 1
    while b + 1 < b_stop and load_u8(other + b) == _ZERO and _digit(other, b + 1, b_stop):
        b += 1
    dots = 0
    a = _skip(one, a, a_stop)
    b = _skip(other, b, b_stop)
    while a < a_stop and b < b_stop:
        byte = load_u8(one + a)
        if byte != load_u8(other + b):
            break
        if byte == _DOT:
            dots += 1
        a = _skip(one, a + 1, a_stop)
        b = _skip(other, b + 1, b_stop)
    return _is_tail_of_zeros(one, a, a_stop, dots) and _is_tail_of_zeros(other, b, b_stop, dots)


@inline
def _has_number(
    text: int, start: int, stop: int, value: int, first: int, a: int, a_stop: int
) -> bool:
    """Whether the number at `a` of a value that begins at `first` stands in a text."""
    minus = _negative(value, first, a)
    b, b_stop = next_number(text, start, start, stop)
    while b >= 0:
        same = same_number(value, a, a_stop, text, b, b_stop)
        if same and _negative(text, start, b) == minus:
            return True
        b, b_stop = next_number(text, start, b_stop, stop)
    return False


@inline
def _has_words(text: int, start: int, stop: int, value: int, size: int) -> bool:
    """Whether a value stands in a text, and no word goes on before or after it."""
    head = _letter(value, 0, size) or _digit(value, 0, size)
    tail = size > 0 and (_letter_before(value, 0, size) or _digit(value, size - 1, size))
    at = find_bytes(text, start, stop, value, size)
    while at >= 0:
        after = at + size
        open_before = at > start and (_letter_before(text, start, at) or _digit(text, at - 1, at))
        open_after = _letter(text, after, stop) or _digit(text, after, stop)
        if not (head and open_before) and not (tail and open_after):
            return True
        at = find_bytes(text, at + 1, stop, value, size)
    return False


@kernel
def hold_values(
    begin: int, end: int, owner: I64, wanted: Any, values: I64, value: int, spans: I64,
    span: int, out: Any,
) -> None:  # fmt: skip
    """Whether what is cited holds the value that is proposed.

    A value with numbers is held where each of them stands as a number of the same size and sign;
    its other words, such as units, do not count. A value without any is held where it stands as
    whole words; scripts without spaces have no bounds to hold.

    Parameters
    ----------
    begin, end : citations to do.
    owner : (n_citations,), ranking of each.
    wanted : (n_citations,) int8, 0 to leave a citation alone.
    values, value : (n_rankings + 1,) byte offsets and address of the values, in UTF-8.
    spans, span : (n_citations + 1,) byte offsets and address of the cited texts.
    out : (n_citations,) int8, filled with `YES` or `NO`.
    """
    for c in range(begin, end):
        if not wanted[c]:
            continue
        start = values[owner[c]]
        stop = values[owner[c] + 1]
        low = spans[c]
        high = spans[c + 1]
        held = True
        a, a_stop = next_number(value, start, start, stop)
        if a < 0:
            held = _has_words(span, low, high, value + start, stop - start)
        while a >= 0 and held:
            held = _has_number(span, low, high, value, start, a, a_stop)
            a, a_stop = next_number(value, start, a_stop, stop)
        out[c] = YES if held else NO
