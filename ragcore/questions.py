"""Cases -> questions to search with: ids, texts, vectors, and the columns that filters look at."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import schema
from ragcore.errors import InputError
from ragcore.formats import arrow
from ragcore.index.chunks import ID_NAMES, VECTOR, vectors_of
from ragcore.index.opened import Index, check_corpus
from ragcore.suites import Suite, open_suite

QUESTION_NAMES = ("question", "query", "text")


@dataclass(frozen=True)
class Questions:
    """What is asked, one row a case in one language.

    Attributes
    ----------
    where, suite : the file; the suite that it is of, if it is of one.
    table : all columns, as they came.
    case_ids, langs : of every row; None where the column or the value is missing.
    texts, asked : of every row, and the column they are in; None without one (vectors alone can be
        searched with).
    vectors : (n, d) float32, or None without such a column.
    """

    where: str
    suite: Suite | None
    table: pa.Table
    case_ids: list[str]
    langs: list[str | None]
    texts: list[str] | None
    asked: str | None
    vectors: np.ndarray[Any, Any] | None

    def __len__(self) -> int:
        """How many there are."""
        return len(self.case_ids)

    def column(self, name: str) -> list[Any] | None:
        """Values of a column, or None without it."""
        return self.table[name].to_pylist() if name in self.table.column_names else None


def read_questions(
    source: Any, split: str | None = None, *, any_columns: bool = False
) -> Questions:
    """The questions of a suite folder, of a file of cases, or of a table.

    Parameters
    ----------
    split : only cases of this split.
    any_columns : neither a question nor a vector is needed.

    Raises
    ------
    InputError
        For a file that holds no cases, a null question, a case that stands twice in one language.
    """
    suite = None
    if isinstance(source, (str, PathLike)):
        path = Path(source)
        if path.is_dir():
            suite = open_suite(path)
            where, table = str(path / "cases.arrow"), suite.cases
        else:
            where, table = str(path), _read(path)
    else:
        where, table = "cases", arrow.from_stream(source)
    if split is not None:
        table = of_split(where, table, split)
    name = arrow.find(table, schema.CASE_NAMES)
    if name is None:
        raise InputError(
            where, f"columns {', '.join(table.column_names) or '(none)'}",
            f"one of {', '.join(schema.CASE_NAMES)}", "name the column of ids case_id",
        )  # fmt: skip
    case_ids = [str(v) for v in _plain(arrow.as_ids(where, name, table[name]))]
    langs: list[str | None] = [None] * len(case_ids)
    if "lang" in table.column_names:
        langs = _plain(table["lang"])
    _refuse_twice(where, case_ids, langs)
    texts = None
    asked = arrow.find(table, QUESTION_NAMES)
    if asked is not None:
        arrow.refuse_nulls(where, table, [asked])
        texts = [str(v) for v in _plain(table[asked])]
    vectors = None
    if VECTOR in table.column_names:
        rows = np.arange(table.num_rows, dtype=np.int64)
        vectors = vectors_of(table[VECTOR], where, rows).astype(np.float32)
    if texts is None and vectors is None and not any_columns:
        raise InputError(
            where, f"columns {', '.join(table.column_names)}",
            f"one of {', '.join(QUESTION_NAMES)}, or {VECTOR}", "name the column question",
        )  # fmt: skip
    return Questions(where, suite, table, case_ids, langs, texts, asked, vectors)


def check_suite(index: Index, questions: Questions) -> None:
    """Refuse an index of another corpus than the suite's own list of chunks, if it has one.

    Raises
    ------
    InputError
        See `ragcore.index.opened.check_corpus`.
    """
    if questions.suite is None:
        return
    for name in ("chunks.arrow", "chunks.parquet"):
        if (questions.suite.path / name).is_file():
            check_corpus(index.path, index.manifest, questions.suite.path / name)
            return


def _read(path: Path) -> pa.Table:
    wanted = "cases as Arrow or Parquet, or a suite folder"
    return arrow.read_checked(path, wanted, "the columns are case_id and question")


def of_split(where: str, table: pa.Table, split: str) -> pa.Table:
    """The cases of one split.

    Raises
    ------
    InputError
        If there is none: the message says which splits there are.
    """
    if "split" not in table.column_names:
        raise InputError(where, "no column split", f"cases of split {split!r}", "leave --split out")
    kept = [row for row, value in enumerate(_plain(table["split"])) if value == split]
    if not kept:
        there = sorted({str(v) for v in _plain(table["split"])})
        raise InputError(where, f"splits {', '.join(there)}", f"cases of split {split!r}")
    return table.take(arrow.numbers(np.array(kept, np.int64)))


def _plain(column: pa.ChunkedArray) -> list[Any]:
    """Values as Python objects."""
    return column.to_pylist()


def _refuse_twice(where: str, case_ids: list[str], langs: list[str | None]) -> None:
    seen: dict[tuple[str, str | None], int] = {}
    for row, key in enumerate(zip(case_ids, langs, strict=True)):
        if key in seen:
            said = f" in {key[1]}" if key[1] else ""
            raise InputError(
                where, f"case {key[0]!r}{said} in rows {seen[key] + 1} and {row + 1}",
                "each case once in a language", "drop one of them", row=row + 1,
            )  # fmt: skip
        seen[key] = row


def vectors_by_id(
    source: str | PathLike[str], ids: list[str], names: tuple[str, ...] = (), what: str = "chunk"
) -> np.ndarray[Any, Any]:
    """Vectors of a file with a column of ids and a column `vector`, one row for each of `ids`.

    Parameters
    ----------
    names : further names of the column of ids.
    what : is looked for, for messages.

    Raises
    ------
    InputError
        If an id of `ids` has no vector, or two.
    """
    path = Path(source)
    table = _read(path)
    name = arrow.find(table, (*names, *ID_NAMES))
    if name is None or VECTOR not in table.column_names:
        raise InputError(
            path, f"columns {', '.join(table.column_names)}",
            f"a column {VECTOR} and one of {', '.join((*names, *ID_NAMES))}",
        )  # fmt: skip
    given = [str(v) for v in _plain(arrow.as_ids(str(path), name, table[name]))]
    row_of: dict[str, int] = {}
    for row, key in enumerate(given):
        if key in row_of:
            raise InputError(
                path, f"{name} {key!r} in rows {row_of[key] + 1} and {row + 1}", "each id once",
                row=row + 1,
            )  # fmt: skip
        row_of[key] = row
    absent = [key for key in ids if key not in row_of]
    if absent:
        raise InputError(
            path, f"no vector of {what} {absent[0]!r} ({len(absent)} of {len(ids)} have none)",
            f"one for every {what}", "embed them all, or use --embed",
        )  # fmt: skip
    order = np.array([row_of[key] for key in ids], np.int64)
    return vectors_of(table[VECTOR], str(path), order)
