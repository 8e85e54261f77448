"""Tables for the terminal, tsv, jsonl, Markdown, Arrow; files appear whole or not at all."""

from __future__ import annotations

import contextlib
import json
import math
import os
import tempfile
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from ragcore.errors import InputError

FORMATS = ("table", "tsv", "jsonl", "md", "arrow")
_STATES = (("na", "n_na"), ("missing", "n_missing"))
_RARE = (("disputed", "n_disputed"), ("failed", "n_failed"))


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A file to write that gets its name only when all of it is on the disk.

    It is written beside `path` under a temporary name, synced and renamed; after an error, or if
    the process is killed, `path` is what it was before. A link stays a link. A pipe or a device
    is no file, and is written to as it is.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    path = Path(os.path.realpath(path))
    try:
        if passing := path.is_fifo() or path.is_char_device():
            handle, name = os.open(path, os.O_WRONLY), ""
        else:
            handle, name = tempfile.mkstemp(".part", f".{path.name}.", path.parent)
    except OSError as error:
        raise _unwritable(path, error) from None
    if passing:
        with os.fdopen(handle, "wb") as stream:
            yield stream
        return
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        mask = os.umask(0)
        os.umask(mask)
        part.chmod(0o666 & ~mask)
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise _unwritable(path, error) from None
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _unwritable(path: Path, error: OSError) -> InputError:
    reason = error.strerror or str(error)
    return InputError(path, f"cannot be written: {reason}", "a folder with room and permission")


def write_arrow(table: pa.Table, stream: IO[bytes]) -> None:
    """An Arrow IPC file; dictionaries that differ between chunks are unified."""
    with pa.ipc.new_file(stream, table.schema) as writer:
        writer.write_table(table.unify_dictionaries().combine_chunks())


def render(rows: list[dict[str, Any]], form: str, level: float = 0.95) -> bytes:
    """Rows of a table in one of the text formats; `level` is that of the intervals.

    tsv has every column at four places, jsonl every column at full precision, null where there
    is no number; table and md are for people and leave out what is empty.
    """
    if form == "jsonl":
        lines = [json.dumps(_finite(row), ensure_ascii=False) for row in rows]
        return "".join(line + "\n" for line in lines).encode("utf-8", "backslashreplace")
    if form == "tsv":
        lines = ["\t".join(rows[0])] if rows else []
        lines += ["\t".join(_cell(v) for v in row.values()) for row in rows]
        return "".join(line + "\n" for line in lines).encode("utf-8", "backslashreplace")
    head, body = _summary(rows, level) if rows and "slice" in rows[0] else _cases(rows)
    lines = markdown(head, body) if form == "md" else aligned(head, body)
    return "".join(line.rstrip() + "\n" for line in lines).encode("utf-8", "backslashreplace")


def _finite(row: dict[str, Any]) -> dict[str, Any]:
    """JSON knows neither NaN nor infinity."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in row.items()
    }


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4f}"
    return plain(str(value))


def plain(text: str) -> str:
    """`text` on one line: what would move the cursor, or turn the line around, is escaped."""
    return "".join(c.encode("unicode_escape").decode() if _moves(c) else c for c in text)


def _moves(c: str) -> bool:
    """Whether a character breaks or turns the line it stands in."""
    turns = "\u202a\u202b\u202d\u202e\u2066\u2067"
    return unicodedata.category(c) in ("Cc", "Zl", "Zp") or c in turns


def count(value: float | None) -> str:
    """A sum or count: whole where it is whole, else up to four places."""
    if value is None:
        return ""
    return str(int(value)) if value.is_integer() else f"{value:.4f}".rstrip("0")


def _number(row: dict[str, Any]) -> str:
    mean = row["mean"]
    if mean is None:
        return "-"
    return count(mean) if row["denominator"] is None else f"{mean:.4f}"


def _fraction(row: dict[str, Any]) -> str:
    if row["denominator"] is None:
        return ""
    return f"{count(row['numerator'])}/{count(row['denominator'])}"


def _interval(row: dict[str, Any]) -> str:
    low, high = row["ci_low"], row["ci_high"]
    if low is None and high is None:
        return ""
    ends = "-inf" if low is None else f"{low:.4f}", "inf" if high is None else f"{high:.4f}"
    text = f"[{ends[0]}, {ends[1]}]"
    method = row["ci_method"] or "exact"
    return text if method == "exact" else f"{text} {method.removeprefix('exact')}"


def _summary(rows: list[dict[str, Any]], level: float) -> tuple[list[str], list[list[str]]]:
    several_runs = len({row["run"] for row in rows}) > 1
    sliced = any(row["slice"] != "all" for row in rows)
    states = [*_STATES, *(s for s in _RARE if any(row[s[1]] for row in rows))]
    noted = any(row["note"] for row in rows)
    head = ["run"] * several_runs + ["slice"] * sliced
    shown = f"{100 * level:.10g}% exact"
    head += ["measure", "value", "n/d", shown, *(name for name, _ in states)]
    head += ["note"] * noted
    body = []
    for row in rows:
        line = [plain(row["run"])] * several_runs + [plain(row["slice"])] * sliced
        line += [plain(row["measure"]), _number(row), _fraction(row), _interval(row)]
        line += [str(row[column]) for _, column in states]
        body.append(line + [row["note"] or ""] * noted)
    return head, body


def _cases(rows: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    names = ["run", "baseline", "case_id", "lang", "repeat", "measure", "baseline_value", "value",
             "delta", "outcome", "numerator", "denominator", "state", "reason"]  # fmt: skip
    shown = [n for n in names if any(row.get(n) is not None for row in rows)]
    return shown, [[_cell(row[n]) for n in shown] for row in rows]


def _width(text: str) -> int:
    """Columns that a terminal gives to `text`; wide characters take two."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def aligned(head: list[str], body: list[list[str]]) -> list[str]:
    """Lines of a table for the terminal."""
    widths = [max(_width(line[i]) for line in [head, *body]) for i in range(len(head))]
    right = {
        "value", "n/d", "na", "missing", "disputed", "failed", "numerator", "denominator",
        "before", "after", "delta", "n",
    }  # fmt: skip
    out = []
    for line in [head, *body]:
        cells = []
        for name, text, width in zip(head, line, widths, strict=True):
            room = " " * (width - _width(text))
            cells.append(room + text if name in right else text + room)
        out.append("  ".join(cells))
    return out


def markdown(head: list[str], body: list[list[str]]) -> list[str]:
    """Lines of a table in Markdown."""
    out = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return out + ["| " + " | ".join(c.replace("|", "\\|") for c in line) + " |" for line in body]


def decimal(value: float | None) -> str:
    """A number at four places; a dash where there is none."""
    return "-" if value is None or math.isnan(value) else f"{value:.4f}"
