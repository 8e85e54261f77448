"""Suites by name: what each `suite.toml` says, checked before anything is done with it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragcore.errors import InputError, UsageError
from ragcore.places import suite_folders
from ragcore.search_settings import STRATEGIES

PUBLIC = "public"
_TEXTS = ("name", "title", "kind", "version", "licence", "source", "subset", "importer",
          "citation", "budget_unit", "embed")  # fmt: skip
_LISTS = ("cannot_show", "languages", "measures", "strategies", "by", "filters", "splits")
_NUMBERS = ("candidate_k", "context_k")
_PUBLIC_NEEDS = ("name", "title", "kind", "version", "licence", "source", "cannot_show",
                 "importer", "measures", "strategies", "files")  # fmt: skip


@dataclass(frozen=True)
class Scope:
    """How questions are asked, and where they may look.

    Attributes
    ----------
    name : of the scope.
    filters : as `ragcore search` takes them.
    question : column of the cases that is asked; "" for the usual one.
    """

    name: str
    filters: tuple[str, ...] = ()
    question: str = ""


@dataclass(frozen=True)
class Entry:
    """A suite that there is.

    Attributes
    ----------
    name, folder : its name, and where its `suite.toml` lies.
    settings : what that says.
    """

    name: str
    folder: Path
    settings: dict[str, Any]

    @property
    def toml(self) -> Path:
        """Its file."""
        return self.folder / "suite.toml"

    @property
    def public(self) -> bool:
        """Whether it is somebody else's data, brought here by an importer."""
        return "importer" in self.settings

    @property
    def kind(self) -> str:
        """What it is, in its own words."""
        return str(self.settings.get("kind", ""))

    @property
    def strategies(self) -> list[str]:
        """The ladder; empty where runs are recorded and not made."""
        return list(self.settings.get("strategies", ()))

    @property
    def measures(self) -> list[str]:
        """Default measures; the first is the primary one."""
        return list(self.settings.get("measures", ()))

    @property
    def scopes(self) -> list[Scope]:
        """Where questions may look; one that is called "" where the suite does not say."""
        base = tuple(self.settings.get("filters", ()))
        return [
            Scope(one["name"], (*base, *one.get("filters", ())), one.get("question", ""))
            for one in self.settings.get("scope", ())
        ] or [Scope("", base)]

    @property
    def limits(self) -> list[str]:
        """What no number of it can tell, a sentence each."""
        return list(self.settings.get("cannot_show", ()))


def entries() -> list[Entry]:
    """All suites that there are, by name; of two with one name the first place counts.

    Raises
    ------
    InputError
        If the `suite.toml` of one is broken.
    """
    found: dict[str, Entry] = {}
    for place in suite_folders():
        for toml in sorted(place.glob("*/suite.toml")):
            one = read_entry(toml.parent)
            found.setdefault(one.name, one)
    return [found[name] for name in sorted(found)]


def entry(name: str) -> Entry:
    """The suite of a name, or in a folder.

    Raises
    ------
    UsageError
        If there is none; the hint names those that there are.
    InputError
        If its `suite.toml` is broken.
    """
    folder = Path(name)
    if (folder / "suite.toml").is_file():
        return read_entry(folder)
    known = entries()
    spelled = name.replace("_", "-").casefold()
    for one in known:
        if one.name.replace("_", "-").casefold() == spelled:
            return one
    if folder.is_dir():
        raise UsageError(f"the folder {name} has no suite.toml", "a suite says there what it is")
    names = ", ".join(one.name for one in known) or "none is installed"
    raise UsageError(f"no suite {name!r}", f"there are: {names}; or give a suite's folder")


def read_entry(folder: Path) -> Entry:
    """The suite in a folder.

    Raises
    ------
    InputError
        Naming the first key that is missing or not what it should be.
    """
    toml = folder / "suite.toml"
    try:
        settings = tomllib.loads(toml.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(toml, f"broken TOML: {error}", "a suite.toml") from None
    except OSError as error:
        raise InputError(toml, error.strerror or str(error), "a readable suite.toml") from None
    _check(toml, settings)
    return Entry(settings.get("name", folder.name), folder, settings)


def _check(toml: Path, settings: dict[str, Any]) -> None:
    """Refuse what the catalogue could not make sense of."""
    for key in _TEXTS:
        if not isinstance(settings.get(key, ""), str):
            raise InputError(toml, f"{key} = {settings[key]!r}", "a text")
    for key in _LISTS:
        value = settings.get(key, [])
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise InputError(toml, f"{key} = {value!r}", "a list of texts")
    for key in _NUMBERS:
        value = settings.get(key, 1)
        if type(value) is not int or value < 1:
            raise InputError(toml, f"{key} = {value!r}", "a whole number from 1 on")
    for name in settings.get("strategies", []):
        if name not in STRATEGIES:
            raise InputError(toml, f"unknown strategy {name!r}", f"one of {', '.join(STRATEGIES)}")
    for one in settings.get("scope", []):
        texts = isinstance(one, dict) and [one.get("name"), one.get("question", "")]
        if not texts or not all(isinstance(text, str) for text in texts):
            raise InputError(toml, f"scope {one!r}", "a name, filters, a question's column")
    _check_files(toml, settings.get("files", {}))
    for one in settings.get("official", []):
        gone = [key for key in ("url", "file", "sha256", "bytes") if key not in one]
        if gone:
            raise InputError(toml, f"official file {one.get('file')!r} without {gone[0]}",
                             "url, file, sha256 and bytes")  # fmt: skip
    if "importer" in settings:
        for key in _PUBLIC_NEEDS:
            if key not in settings:
                raise InputError(toml, f"no {key}", "a public suite that says what it is")
        if not settings["files"]:
            raise InputError(toml, "no files", "the pinned files of a public suite")
        if not settings["kind"].startswith(PUBLIC):
            raise InputError(
                toml, f"kind = {settings['kind']!r}", "a kind that begins with public",
                "what an importer brings was made by others: its numbers stand apart",
            )  # fmt: skip


def _check_files(toml: Path, files: Any) -> None:
    if not isinstance(files, dict):
        raise InputError(toml, f"files = {files!r}", "a table by file name")
    for name, record in files.items():
        if not isinstance(record, dict) or not isinstance(record.get("sha256"), str):
            raise InputError(toml, f"file {name!r} without sha256", "a checksum for every file")
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise InputError(toml, f"file {name!r}", "a path inside the folder")
