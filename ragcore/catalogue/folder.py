"""A suite's working folder: what an importer gave, or an authored suite, as files to score.

    suite.toml  cases.arrow  chunks.arrow  judgments/*.arrow  runs/*.arrow  index/

It is an ordinary suite folder: `ragcore score FOLDER/runs/*.arrow` finds its labels.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import schema
from ragcore.catalogue.descriptor import file_name
from ragcore.catalogue.download import digest_of
from ragcore.catalogue.entries import Entry
from ragcore.catalogue.pinned import Source
from ragcore.errors import InputError, UsageError
from ragcore.formats.arrow import numbers, read_table
from ragcore.formats.compute import pc
from ragcore.public.imported import Imported
from ragcore.questions import of_split
from ragcore.report.table import whole_file, write_arrow
from ragcore.suites import UNFINISHED, Suite, open_suite

CODE_POINTS = "code points"
_MARK = "# A working folder that ragcore wrote; it may be written again.\n"
_BEGUN = f"{_MARK}{UNFINISHED} = true\n"
_DROPPED = ("files", "official", "importer", "pyarrow", "generator", "expected")


def write(entry: Entry, source: Source, given: Imported, folder: Path) -> None:
    """Write an imported collection as a suite.

    Raises
    ------
    UsageError
        If the folder holds something that this program did not write.
    """
    tables = {"cases.arrow": given.cases}
    unit = str(entry.settings.get("budget_unit", ""))
    if given.chunks is not None:
        tables["chunks.arrow"], unit = _sized(given.chunks, unit)
    named = [(f"judgments/{file_name(k)}.arrow", v) for k, v in given.judgments.items()]
    named += [
        (f"runs/{file_name(name)}.arrow", _named(run, name, entry.name))
        for name, run in given.runs.items()
    ]
    for name, table in named:
        if name in tables:
            raise InputError(entry.toml, f"two tables for {name}", "names that differ as files do")
        tables[name] = table
    clear(folder)
    written = {name: _put(table, folder / name) for name, table in tables.items()}
    settings = {k: v for k, v in entry.settings.items() if k not in _DROPPED}
    settings |= {"form": source.form, "notes": list(given.notes), "budget_unit": unit}
    settings["imported_by"] = entry.settings["importer"]
    _write_toml(folder, settings, written)


def copy(entry: Entry, folder: Path) -> None:
    """Copy an authored suite: the files that its `suite.toml` names, verified.

    Raises
    ------
    InputError
        Naming the first file that is missing or another than it says.
    """
    verify_authored(entry)
    if entry.folder.resolve().is_relative_to(folder.resolve()):
        raise UsageError(
            f"{folder} is the folder of the suite {entry.name} itself",
            "give another folder to work in: this one would be emptied",
        )
    clear(folder)
    written = {}
    for name, record in entry.settings.get("files", {}).items():
        if not name.endswith(".arrow"):
            continue
        _make_folder((folder / name).parent)
        with (entry.folder / name).open("rb") as source, whole_file(folder / name) as stream:
            shutil.copyfileobj(source, stream)
        written[name] = record
    settings = {k: v for k, v in entry.settings.items() if k not in ("files", "pyarrow")}
    _write_toml(folder, settings, written)


def narrow(suite: Suite, split: str) -> Suite:
    """Keep the cases of one split in a working folder, and what is judged of them.

    Whatever scores its runs later then scores these cases alone: one that nobody searched for
    would count as a miss.

    Raises
    ------
    InputError
        If no case is of that split.
    """
    folder, settings = suite.path, dict(suite.settings)
    cases = of_split(str(folder / "cases.arrow"), suite.cases, split)
    written = dict(settings.pop("files", {}))
    with whole_file(folder / "suite.toml") as stream:
        stream.write(_BEGUN.encode())
    written["cases.arrow"] = _put(cases, folder / "cases.arrow")
    kept = pc.unique(cases["case_id"])
    for name in written:
        if name.startswith("judgments/"):
            path = folder / name
            with path.open("rb") as source:
                table = read_table(path, source.read(8))
            if "case_id" in table.column_names:
                ids = table["case_id"].cast(kept.type)
                written[name] = _put(table.filter(pc.is_in(ids, value_set=kept)), path)
    _write_toml(folder, settings | {"split": split, "splits": [split]}, written)
    return open_suite(folder)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep other runs out of a working folder meanwhile; the lock dies with its process.

    Raises
    ------
    UsageError
        If another process works in it.
    InputError
        If there can be no such folder.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is no folder", "give another one to work in")
    _make_folder(folder)
    try:
        import fcntl
    except ImportError:  # no such locks here
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageError(
                f"another process works in {folder}", "wait for it, or say --work DIR for this run"
            ) from None
        yield
    finally:
        os.close(handle)


def verify_authored(entry: Entry) -> None:
    """Check every file of an authored suite against its checksum.

    Raises
    ------
    InputError
        Naming the first that is missing or another than `suite.toml` says.
    """
    for name, record in entry.settings.get("files", {}).items():
        path = entry.folder / name
        if not path.is_file():
            raise InputError(path, "no such file", f"it, as {entry.toml} names it")
        digest = digest_of(path)
        if digest != record["sha256"]:
            raise InputError(
                path, f"sha256 {digest[:12]}…", f"sha256 {record['sha256'][:12]}…",
                "it was changed after its suite.toml was written: figures would not compare",
            )  # fmt: skip


def clear(folder: Path) -> None:
    """Make an empty working folder, in place of one that is there.

    Raises
    ------
    UsageError
        If it holds something else.
    InputError
        If it cannot be written.
    """
    toml = folder / "suite.toml"
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        try:
            ours = toml.read_text("utf-8").startswith(_MARK)
        except (OSError, UnicodeDecodeError):
            ours = False
        if not ours:
            raise UsageError(
                f"{folder} holds something that is no working folder of a suite",
                "give another folder: what is there would be lost",
            )
    try:
        for name in ("cases.arrow", "chunks.arrow", "report.md", "scores.arrow"):
            (folder / name).unlink(missing_ok=True)
        for name in ("index", "runs", "judgments"):
            if (folder / name).exists():
                shutil.rmtree(folder / name)
        folder.mkdir(parents=True, exist_ok=True)
        toml.write_text(_BEGUN, "utf-8")
    except OSError as error:
        raise InputError(folder, error.strerror or str(error), "a folder to write to") from None


def _put(table: pa.Table, path: Path) -> dict[str, Any]:
    """Write a table; what `suite.toml` says of the file."""
    _make_folder(path.parent)
    with whole_file(path) as stream:
        write_arrow(table, stream)
    return {"sha256": digest_of(path), "rows": table.num_rows}


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(folder, error.strerror or str(error), "a folder to write to") from None


def _sized(chunks: pa.Table, unit: str) -> tuple[pa.Table, str]:
    """Chunks with their lengths, and what these are counted in: code points if nothing is said."""
    at = chunks.schema.get_field_index("n_tokens")
    if at >= 0 and chunks["n_tokens"].null_count == 0:
        return chunks, unit
    if "text" not in chunks.column_names:
        return chunks, unit
    lengths = pc.fill_null(pc.utf8_length(chunks["text"]), 0).combine_chunks()
    column = numbers(np.asarray(lengths).astype(np.int32))
    field = schema.CHUNKS.field("n_tokens")
    sized = chunks.append_column(field, column) if at < 0 else chunks.set_column(at, field, column)
    return sized, CODE_POINTS


def _named(run: pa.Table, name: str, suite: str) -> pa.Table:
    """A recorded run whose manifest says which run of which suite it is."""
    metadata = dict(run.schema.metadata or {})
    said = json.loads(metadata.get(schema.MANIFEST_KEY, b"{}"))
    said = {"run": name, "suite": suite, **said}
    metadata[schema.MANIFEST_KEY] = json.dumps(said, sort_keys=True, ensure_ascii=False).encode()
    return run.replace_schema_metadata(metadata)


def _write_toml(folder: Path, settings: dict[str, Any], files: Mapping[str, Any]) -> None:
    lines = [_MARK.rstrip()]
    lines += [f"{_key(key)} = {_toml(value)}" for key, value in settings.items()]
    for name, record in files.items():
        lines += [f"\n[files.{_toml(name)}]"]
        lines += [f"{_key(key)} = {_toml(value)}" for key, value in record.items()]
    with whole_file(folder / "suite.toml") as stream:
        stream.write(("\n".join(lines) + "\n").encode())


def _key(key: str) -> str:
    """A key of TOML, quoted where it must be."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _toml(key)


def _toml(value: Any) -> str:
    """A value of TOML as TOML; tables inline."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(one) for one in value) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, (int, float)) else value.isoformat()
