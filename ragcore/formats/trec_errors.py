"""Which line of a TREC file breaks the format, what stands there, and how to mend it."""

from __future__ import annotations

import re

import numpy as np

from ragcore.errors import InputError
from ragcore.formats.bytes import Source

_SHOWN = 60
_RUN = "6 fields: query Q0 doc rank score tag"
_QRELS = "4 fields: query iteration doc grade"
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
_INTEGER = re.compile(rb"[+-]?\d+")
_ITERATIONS = (b"Q0", b"q0", b"0")


def has_fields(line: bytes, is_run: bool) -> bool:
    """Whether a stripped line is a row: not blank, and no comment by the rule of the kernels."""
    if not line.startswith(b"#"):
        return bool(line)
    fields = line.split()
    if is_run:
        value = fields[4].lstrip(b"+-").lower() if len(fields) > 5 else b""
        number = value in (b"inf", b"infinity") or _NUMBER.fullmatch(value)
        return fields[0] != b"#" and bool(number)
    return fields[0] != b"#" and len(fields) == 4 and bool(_INTEGER.fullmatch(fields[3]))


def line_of_row(source: Source, start: int, row: int, is_run: bool) -> int:
    """Line, from 1, of the `row`-th line with fields at or after byte `start` of the text."""
    before = 0
    for begin, text in source.blocks():
        place = max(0, start - begin)
        if place >= text.size:
            before += _newlines(text)
            continue
        before += _newlines(text[:place])
        for line in text[place:].tobytes().split(b"\n")[:-1]:
            before += 1
            if has_fields(line.strip(), is_run):
                row -= 1
                if row < 0:
                    return before
    raise InputError(source.path, "fewer lines than before", "the file as it was first read")


def refusal(
    source: Source, place: int, columns: tuple[int, int, int] | None, width: int
) -> InputError:
    """Describe the line at byte `place`, refused in a run (no `columns`) or in qrels."""
    number, line = _line_at(source, place)
    fields = line.split()
    if columns is None:
        if len(fields) < 6:
            found, wanted, hint = _count(fields, line), _RUN, _run_hint(fields)
        else:
            found, wanted, hint = _bad_score(fields[4])
    elif len(fields) != width and (width, columns) == (4, (0, 2, 3)):
        found, wanted, hint = _count(fields, line), _QRELS, _qrels_hint(fields)
    elif len(fields) != width:
        found, hint = _count(fields, line), ""
        wanted = f"{width} fields, as in the header line"
    else:
        found, wanted, hint = _bad_grade(fields[columns[2]])
    return InputError(source.path, found, wanted, hint, line=number)


def old_mac_refusal(source: Source) -> InputError:
    """Describe a file whose lines end with a carriage return and no newline."""
    return InputError(
        source.path,
        "carriage returns in the middle of a line",
        "lines that end with a newline",
        "turn each carriage return that stands alone into a newline",
        line=1,
    )


def _newlines(text: np.ndarray) -> int:
    return int(np.count_nonzero(text == 10))


def _line_at(source: Source, place: int) -> tuple[int, bytes]:
    number = 1
    for begin, text in source.blocks():
        if begin + text.size > place:
            number += _newlines(text[: place - begin])
            return number, text[place - begin :].tobytes().split(b"\n", 1)[0]
        number += _newlines(text)
    return number, b""


def _quoted(token: bytes) -> str:
    text = token[: 4 * _SHOWN].decode("utf-8", "backslashreplace")
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "...")


def _count(fields: list[bytes], line: bytes) -> str:
    return f"{len(fields)} field{'s' * (len(fields) != 1)} in {_quoted(line.strip())}"


def _run_hint(fields: list[bytes]) -> str:
    if any(field.count(b",") > 1 for field in fields):
        return "white space parts the fields, not commas"
    if len(fields) == 5:
        return "add a run tag, any word, at the end of each line"
    if len(fields) == 4:
        return "four fields are qrels; a run also has the score and the tag"
    if len(fields) == 3:
        return "query, doc and rank alone have no score: add Q0, the score and a tag"
    return ""


def _qrels_hint(fields: list[bytes]) -> str:
    if any(field.count(b",") > 1 for field in fields):
        return "white space parts the fields, not commas"
    if len(fields) == 3 and fields[1] in _ITERATIONS:
        return "the grade is missing: add it at the end of the line"
    if len(fields) == 3:
        return "add a second field, any word; or a header line: query-id corpus-id score"
    if len(fields) == 6:
        return "six fields are a run"
    return "ids hold no white space" if len(fields) > 4 else ""


def _bad_score(token: bytes) -> tuple[str, str, str]:
    found, wanted = f"score {_quoted(token)}", "a decimal number or infinity"
    if token.lstrip(b"+-").lower() == b"nan":
        return found, "a number", "NaN has no place in an order: drop the row or give it a score"
    if token.count(b",") == 1 and _NUMBER.fullmatch(token.replace(b",", b".")):
        return found, wanted, "write a decimal point, not a comma"
    if token[:-1] and _NUMBER.fullmatch(token[:-1]):
        return found, wanted, f"remove the {_quoted(token[-1:])} after the number"
    if token.lower() == b"score":
        return found, wanted, "a run has no header line: remove it"
    return found, wanted, ""


def _bad_grade(token: bytes) -> tuple[str, str, str]:
    found, wanted = f"grade {_quoted(token)}", "an integer"
    if re.fullmatch(rb"[+-]?\d+", token):
        return found, f"{wanted} that fits 32 bits", ""
    if re.fullmatch(rb"[+-]?\d+\.0*", token):
        return found, wanted, "write 1 for 1.0, or read the file with float grades"
    if _NUMBER.fullmatch(token):
        return found, wanted, "map the grades to integers first"
    return found, wanted, ""
