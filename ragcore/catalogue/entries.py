"""Suites by name: what each `suite.toml` says, checked before anything is done with it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragcore.catalogue.descriptor import check
from ragcore.errors import UsageError
from ragcore.places import suite_folders
from ragcore.suites import folded, read_toml


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
    for one in known:
        if folded(one.name) == folded(name):
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
    settings = read_toml(toml)
    check(toml, settings)
    return Entry(settings.get("name", folder.resolve().name), folder, settings)
