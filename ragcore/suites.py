"""Suites: what `suite.toml` says, the cases, and their evidence as judgements."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ragcore import schema
from ragcore.columns import Rows
from ragcore.errors import InputError, UsageError
from ragcore.formats import arrow
from ragcore.places import suite_folders, user_cache
from ragcore.strings import Strings
from ragcore_kernels.layout import I64
from ragcore_kernels.ranking import BY_SCORE
from ragcore_kernels.rows import SCORE_NONE

_RELEVANT_ROLES = ("", "supporting", "conflicting")
UNFINISHED = "unfinished"
"""Key of a `suite.toml` whose folder is being written: it is no suite until the key is gone."""


@dataclass
class Suite:
    """A suite folder, opened.

    Attributes
    ----------
    name, path : from `suite.toml`; the folder.
    kind : what the suite is, e.g. "development (authored, not a sample)"; repeated in reports.
    measures : the default ones; empty = the engine's.
    cases : `schema.CASES`, perhaps with more columns.
    """

    name: str
    path: Path
    kind: str
    measures: list[str]
    cases: pa.Table
    settings: dict[str, Any] = field(default_factory=dict)


def open_suite(path: Path) -> Suite:
    """The suite in the folder `path`.

    Raises
    ------
    InputError
        If the folder is no suite, or its files are broken.
    """
    toml = path / "suite.toml"
    settings: dict[str, Any] = {"name": path.resolve().name}
    if toml.is_file():
        settings |= read_toml(toml)
    file = next((p for n in ("arrow", "parquet") if (p := path / f"cases.{n}").is_file()), None)
    if file is None:
        raise InputError(
            path, "no cases.arrow", "a suite folder: suite.toml and cases.arrow",
            "for TREC judgements say --qrels FILE instead of --suite",
        )  # fmt: skip
    with file.open("rb") as stream:
        cases = arrow.read_table(file, stream.read(8))
    if "case_id" not in cases.column_names:
        raise InputError(file, f"columns {', '.join(cases.column_names)}", "a column case_id")
    try:
        cases.validate(full=True)  # it is small, and read as Python objects
    except pa.ArrowInvalid as error:
        raise InputError(file, f"damaged: {error}", "a whole file", "write it again") from None
    if "evidence" in cases.column_names and not _is_evidence(cases.schema.field("evidence").type):
        kind = cases.schema.field("evidence").type
        raise InputError(file, f"column evidence of type {kind}", "lists of structs with doc_id")
    return Suite(
        settings["name"], path, settings.get("kind", ""), list(settings.get("measures", ())),
        cases, settings,
    )  # fmt: skip


def read_toml(toml: Path) -> dict[str, Any]:
    """What a `suite.toml` says, if a suite can be made of it.

    Raises
    ------
    InputError
        If it cannot be read, says a thing in another type, or its folder was never finished.
    """
    try:
        said = tomllib.loads(toml.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(toml, f"broken TOML: {error}", "a suite.toml") from None
    except OSError as error:
        raise InputError(toml, error.strerror or str(error), "a readable suite.toml") from None
    if said.get(UNFINISHED):
        raise InputError(
            toml, "a working folder that was never finished", "a whole suite",
            "whatever wrote it was stopped: run it again",
        )  # fmt: skip
    for key in ("name", "kind"):
        if not isinstance(said.get(key, ""), str):
            raise InputError(toml, f"{key} = {said[key]!r}", "a text")
    for key in ("measures", "cannot_show"):
        value = said.get(key, [])
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise InputError(toml, f"{key} = {value!r}", "a list of texts")
    return said


def pool_size(suite: Suite) -> int | None:
    """Chunks that can be retrieved, by the suite's own list of them; None if it has none."""
    for file in (suite.path / "chunks.arrow", suite.path / "chunks.parquet"):
        if file.is_file():
            with file.open("rb") as stream:
                head = stream.read(8)
            return arrow.read_table(file, head).num_rows
    return None


def has_chunks(suite: Suite) -> bool:
    """Whether the suite's folder has a list of its chunks."""
    return any((suite.path / f"chunks.{kind}").is_file() for kind in ("arrow", "parquet"))


def _is_evidence(kind: pa.DataType) -> bool:
    value = getattr(kind, "value_type", None)
    return pa.types.is_null(kind) or (value is not None and pa.types.is_struct(value))


def manifest_of(table: pa.Table | None) -> dict[str, Any]:
    """The manifest that a run carries in its schema metadata; empty without one.

    Raises
    ------
    InputError
        If it is no JSON object.
    """
    metadata = table.schema.metadata if table is not None else None
    if not metadata or schema.MANIFEST_KEY not in metadata:
        return {}
    try:
        manifest = json.loads(metadata[schema.MANIFEST_KEY])
    except ValueError:
        manifest = None
    if not isinstance(manifest, dict):
        found = metadata[schema.MANIFEST_KEY][:60].decode("utf-8", "backslashreplace")
        raise InputError(schema.MANIFEST_KEY.decode(), f"{found!r}", "a JSON object")
    return manifest


def find_suite(name: str, near: Path | None = None) -> Path:
    """The folder of the suite `name`: a path, or looked for around a run and under `data/`.

    Raises
    ------
    UsageError
        If there is none.
    """
    direct = Path(name)
    if direct.is_dir():
        return direct
    around = [near.parent, near.parent.parent] if near is not None else []
    for folder in around:
        if (folder / "suite.toml").is_file() and folded(_name_of(folder)) == folded(name):
            return folder
    homes = [*suite_folders(), user_cache() / "suites"]
    looked = [_inside(folder, name) for folder in (*around, *homes)]
    there = [folder for folder in looked if (folder / "suite.toml").is_file()]
    for folder in there:
        if _said(folder).get(UNFINISHED):
            continue
        if any((folder / f"cases.{kind}").is_file() for kind in ("arrow", "parquet")):
            return folder
    if there:
        raise UsageError(
            f"the suite {name!r} is not made yet", f"make it: ragcore suite run {name}"
        )
    raise UsageError(
        f"no suite {name!r} found",
        "give the folder of one; `ragcore suite list` has the names. Or judge by --qrels FILE"
        if near is not None
        else "give the folder of one; `ragcore suite list` has the names",
    )


def folded(name: str) -> str:
    """A suite's name, whatever its case and its dashes."""
    return name.replace("_", "-").casefold()


def _inside(folder: Path, name: str) -> Path:
    """Where a folder has the suite `name`, if it has it: by this name, else by one like it."""
    if (folder / name).is_dir() or not folder.is_dir():
        return folder / name
    alike = (one for one in sorted(folder.iterdir()) if folded(one.name) == folded(name))
    return next(alike, folder / name)


def _said(folder: Path) -> dict[str, Any]:
    """What the `suite.toml` of a folder says; nothing where it cannot be read."""
    try:
        return tomllib.loads((folder / "suite.toml").read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError):
        return {}


def _name_of(folder: Path) -> str:
    return str(_said(folder).get("name", folder.name))


def judgements(suite: Suite, required: bool = False) -> Rows | None:
    """The evidence of every case as graded judgements, one segment a row of `cases`.

    The id is `chunk_id`, else `doc_id`; the grade is `relevance`, else 1 for supporting and
    conflicting evidence and 0 for other roles; of several items for one id the highest counts.

    Parameters
    ----------
    required : only what the answer needs and the snapshot has, with grade 1; None if no item of
        the suite says what is required.
    """
    cases = suite.cases
    where = str(suite.path / "cases.arrow")
    lists = (
        cases["evidence"].to_pylist()
        if "evidence" in cases.column_names
        else [None] * cases.num_rows
    )
    if required and not any(item.get("required") is not None for e in lists for item in e or ()):
        return None
    ids: list[str] = []
    grades: list[int] = []
    segments = np.zeros((len(lists), 3), np.int64)
    for row, items in enumerate(lists):
        if not items:
            continue
        best: dict[str, int] = {}
        for item in items:
            key = item.get("chunk_id") or item.get("doc_id")
            if key is None:
                raise InputError(where, "evidence without an id", "doc_id or chunk_id", row=row + 1)
            if required:
                if not item.get("required") or item.get("in_snapshot") is False:
                    continue
                grade = 1
            else:
                given = item.get("relevance")
                usual = int((item.get("role") or "") in _RELEVANT_ROLES)
                grade = usual if given is None else given
                if type(grade) is not int or not -(2**31) <= grade < 2**31:
                    raise InputError(
                        where, f"relevance {given!r}", "an integer that fits int32", row=row + 1
                    )
            best[key] = max(grade, best.get(key, grade))
        segments[row] = 0, len(ids), len(best)
        ids.extend(best)
        grades.extend(best.values())
    return rows_of(suite, arrow.texts(ids), np.array(grades, np.int32), segments)


def rows_of(suite: Suite, column: pa.Array, grades: NDArray[np.int32], segments: I64) -> Rows:
    """Judgements of a suite's cases out of ids and grades; `segments` is one a row of `cases`."""
    cases, where = suite.cases, str(suite.path / "cases.arrow")
    numbers = arrow.numbers(grades)
    address = numbers.buffers()[1].address if len(numbers) else 0
    case_ids = arrow.as_ids(where, "case_id", cases["case_id"]).combine_chunks()
    if isinstance(case_ids, pa.ChunkedArray):
        case_ids = pa.concat_arrays(case_ids.chunks)
    at = np.zeros((len(segments), 2), np.int64)
    at[:, 1] = np.arange(len(segments))
    return Rows(
        suite.name, where, Strings.of([column]), np.array([[SCORE_NONE, address]], np.int64),
        BY_SCORE, segments, Strings.of([case_ids]), at, len(column), keep=[numbers],
    )  # fmt: skip
