"""What a `suite.toml` says, checked key by key before anything is done with it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from ragcore.analysis import analyzer_for
from ragcore.errors import InputError, UsageError
from ragcore.filters import Filter
from ragcore.index.options import METRICS
from ragcore.search_settings import STRATEGIES
from ragcore_kernels.bm25 import LENGTHS
from ragcore_kernels.bm25_formulas import Formula

PUBLIC = "public"
LONGEST = 100
"""Characters of a suite's or a scope's name: a folder or a file is called by it."""
DEEPEST = 10_000_000
"""Rows that a channel or a context may be asked for."""
_TEXTS = ("name", "title", "kind", "version", "licence", "source", "subset", "importer",
          "citation", "budget_unit", "embed")  # fmt: skip
_LISTS = ("cannot_show", "languages", "measures", "strategies", "by", "filters", "splits")
_NUMBERS = ("candidate_k", "context_k")
_PUBLIC_NEEDS = ("name", "title", "kind", "version", "licence", "source", "cannot_show",
                 "importer", "measures", "strategies", "files")  # fmt: skip
_INDEX = ("analyzer", "k1", "b", "variant", "lengths", "metric")
_SCOPE = ("name", "filters", "question")
_OFFICIAL = ("url", "file", "sha256", "bytes")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def check(toml: Path, said: Mapping[str, Any]) -> None:
    """Refuse what the catalogue could not make sense of.

    Raises
    ------
    InputError
        Naming the first key that is missing or not what it should be.
    """
    _check_kinds(toml, said)
    if "name" in said:
        _check_name(toml, "name", said["name"])
    for name in said.get("strategies", ()):
        if name not in STRATEGIES:
            raise InputError(toml, f"unknown strategy {name!r}", f"one of {', '.join(STRATEGIES)}")
    _once(toml, "strategy", said.get("strategies", ()))
    _check_filters(toml, said.get("filters", ()))
    _check_index(toml, said.get("index", {}))
    _check_scopes(toml, said.get("scope", []))
    _check_files(toml, said.get("files", {}))
    _check_official(toml, said.get("official", []))
    if "importer" in said:
        _check_public(toml, said)


def file_name(name: str) -> str:
    """A run's name as the name of a file."""
    return re.sub(r"[^\w.+@-]+", "-", name).strip("-.") or "run"


def _check_kinds(toml: Path, said: Mapping[str, Any]) -> None:
    for key in _TEXTS:
        if not isinstance(said.get(key, ""), str):
            raise InputError(toml, f"{key} = {said[key]!r}", "a text")
    for key in _LISTS:
        if not _texts(value := said.get(key, [])):
            raise InputError(toml, f"{key} = {value!r}", "a list of texts")
    for key in _NUMBERS:
        value = said.get(key, 1)
        if type(value) is not int or not 1 <= value <= DEEPEST:
            raise InputError(toml, f"{key} = {value!r}", "a whole number from 1 on")


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _check_name(toml: Path, key: str, name: str) -> None:
    """Refuse a name that no folder or file can have, or that would lie elsewhere."""
    odd = not name.isprintable() or any(each in name for each in '/\\:*?"<>|')
    if odd or not 0 < len(name) <= LONGEST or name[0] in ". " or name[-1] in ". ":
        raise InputError(
            toml, f"{key} = {name[: LONGEST + 20]!r}", "a name that a folder can have",
            "letters, digits, dashes; no slash, and no dot at either end",
        )  # fmt: skip


def _once(toml: Path, what: str, names: Any) -> None:
    for i, name in enumerate(names):
        if name in names[:i]:
            raise InputError(toml, f"{what} {name!r} twice", f"each {what} once")


def _check_filters(toml: Path, filters: Any) -> None:
    for text in filters:
        try:
            Filter.parse(text)
        except UsageError as error:
            raise InputError(toml, str(error).splitlines()[0], error.hint) from None


def _check_index(toml: Path, given: Any) -> None:
    """Refuse settings that an index cannot be built with."""
    if not isinstance(given, dict):
        raise InputError(toml, f"index = {given!r}", f"a table of {', '.join(_INDEX)}")
    for key in given:
        if key not in _INDEX:
            raise InputError(toml, f"index.{key} is unknown", f"one of {', '.join(_INDEX)}")
    for key in ("analyzer", "variant", "lengths", "metric"):
        if not isinstance(given.get(key, ""), str):
            raise InputError(toml, f"index.{key} = {given[key]!r}", "a text")
    for key in ("k1", "b"):
        if type(given.get(key, 1.0)) not in (int, float):
            raise InputError(toml, f"index.{key} = {given[key]!r}", "a number")
    for key, known in (("metric", METRICS), ("lengths", LENGTHS)):
        if given.get(key, known[0]) not in known:
            raise InputError(toml, f"index.{key} = {given[key]!r}", f"one of {', '.join(known)}")
    try:
        analyzer_for(given.get("analyzer", "default"))
        variant, k1, b = given.get("variant", "tantivy"), given.get("k1", 1.2), given.get("b", 0.75)
        Formula.checked(variant, k1, b, None)
    except UsageError as error:
        found = f"index.analyzer: {str(error).splitlines()[0]}"
        raise InputError(toml, found, error.hint) from None
    except ValueError as error:
        found, _, wanted = str(error).partition("; wanted ")
        raise InputError(toml, f"index.{found}", wanted or "settings of BM25") from None


def _check_scopes(toml: Path, scopes: Any) -> None:
    if not isinstance(scopes, list):
        raise InputError(toml, f"scope = {scopes!r}", "tables [[scope]]")
    names: list[str] = []
    for one in scopes:
        texts = isinstance(one, dict) and [one.get("name"), one.get("question", "")]
        if not texts or not all(isinstance(text, str) for text in texts):
            raise InputError(toml, f"scope {one!r}", "a name, filters, a question's column")
        for key in one:
            if key not in _SCOPE:
                found = f"scope {one['name']!r} says {key}"
                raise InputError(toml, found, f"only {', '.join(_SCOPE)}")
        _check_name(toml, "the name of a scope", one["name"])
        if not _texts(filters := one.get("filters", [])):
            found = f"scope {one['name']!r}: filters = {filters!r}"
            raise InputError(toml, found, "a list of texts")
        _check_filters(toml, filters)
        names.append(file_name(one["name"]))
    _once(toml, "scope", names)


def _check_files(toml: Path, files: Any) -> None:
    if not isinstance(files, dict):
        raise InputError(toml, f"files = {files!r}", "a table by file name")
    for name, record in files.items():
        if not isinstance(record, dict) or not isinstance(record.get("sha256"), str):
            raise InputError(toml, f"file {name!r} without sha256", "a checksum for every file")
        _check_file(toml, name)
        _check_record(toml, f"file {name!r}", record)


def _check_file(toml: Path, name: str) -> None:
    """Refuse a file that does not lie in the folder."""
    parts = PurePosixPath(name).parts
    outside = Path(name).is_absolute() or ".." in parts or not parts or "\\" in name
    if outside or not name.isprintable():
        raise InputError(toml, f"file {name!r}", "a path inside the folder")


def _check_record(toml: Path, what: str, record: Mapping[str, Any]) -> None:
    """Refuse a checksum or a size that no file can have."""
    if not _SHA256.fullmatch(record["sha256"]):
        found = f"{what}: sha256 {record['sha256'][:80]!r}"
        raise InputError(toml, found, "64 digits, 0 to 9 and a to f")
    for key in ("bytes", "rows"):
        value = record.get(key, 0)
        if type(value) is not int or value < 0:
            raise InputError(toml, f"{what}: {key} = {value!r}", "a whole number from 0 on")


def _check_official(toml: Path, official: Any) -> None:
    if not isinstance(official, list) or not all(isinstance(one, dict) for one in official):
        raise InputError(toml, f"official = {official!r}", "tables [[official]]")
    for one in official:
        gone = [key for key in _OFFICIAL if key not in one]
        if gone:
            raise InputError(toml, f"official file {one.get('file')!r} without {gone[0]}",
                             "url, file, sha256 and bytes")  # fmt: skip
        for key in ("url", "file", "sha256"):
            if not isinstance(one[key], str):
                raise InputError(toml, f"official file: {key} = {one[key]!r}", "a text")
        what = f"official file {one['file']!r}"
        _check_file(toml, one["file"])
        _check_record(toml, what, one)
        if not re.fullmatch(r"https?://[!-~]+", one["url"]):
            raise InputError(toml, f"{what}: url {one['url']!r}", "an address of http or https")
    _once(toml, "official file", [one["file"] for one in official])


def _check_public(toml: Path, said: Mapping[str, Any]) -> None:
    """Refuse a suite of others' data that does not say what it is."""
    for key in _PUBLIC_NEEDS:
        if key not in said:
            raise InputError(toml, f"no {key}", "a public suite that says what it is")
    if not said["files"]:
        raise InputError(toml, "no files", "the pinned files of a public suite")
    if not said["kind"].startswith(PUBLIC):
        raise InputError(
            toml, f"kind = {said['kind']!r}", "a kind that begins with public",
            "what an importer brings was made by others: its numbers stand apart",
        )  # fmt: skip
