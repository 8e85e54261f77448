"""Whether a suite is what it says: files, labels, splits, types. What is wrong is named."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ragcore.catalogue import folder as folders
from ragcore.catalogue import pinned
from ragcore.catalogue.entries import Entry
from ragcore.catalogue.facts import Facts, facts_of
from ragcore.catalogue.sound import IN_DOMAIN, stale_label, wanted_splits
from ragcore.errors import RagcoreError
from ragcore.suites import open_suite

MANDATORY = ("hard-negative", "unanswerable")
"""Query types without which an in-domain suite cannot tell good from lucky."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: whether it holds, and what was found."""

    what: str
    holds: bool
    found: str


def check_suite(entry: Entry, data: Path | None, work: Path) -> tuple[list[Finding], Facts | None]:
    """Look at everything that can be wrong with a suite; nothing is raised for what is.

    Parameters
    ----------
    data : folder of public data, see `ragcore.places.data_folders`.
    work : an empty folder, for the suite that an importer makes.
    """
    out = [Finding("suite.toml", True, entry.kind or "kind not stated")]
    try:
        facts, said = _read(entry, data, work)
    except RagcoreError as error:
        said = "; ".join(line.strip() for line in str(error).splitlines())
        return [*out, Finding("readable", False, said)], None
    out += [said, _labels(facts), *_splits(entry, facts), *_in_domain(entry, facts)]
    return out, facts


def facts_or_reason(entry: Entry, data: Path | None, work: Path) -> tuple[Facts | None, str]:
    """What a suite holds, counted; or why it could not be read. See `check_suite`."""
    try:
        return _read(entry, data, work)[0], ""
    except RagcoreError as error:
        return None, str(error)


def _read(entry: Entry, data: Path | None, work: Path) -> tuple[Facts, Finding]:
    """Count a suite, its files verified."""
    if entry.public:
        source = pinned.find(entry, data)
        n, form = len(source.files), f", {source.form}"
        folders.write(entry, source, pinned.load(entry, source), work)
        suite = open_suite(work)
    else:
        folders.verify_authored(entry)
        n, form = len(entry.settings.get("files", {})), ""
        suite = open_suite(entry.folder)
    return facts_of(suite), Finding("files", True, f"{n} of {n} with their checksums{form}")


def _labels(facts: Facts) -> Finding:
    if facts.n_stale:
        named = "; ".join(map(stale_label, facts.stale[:5]))
        found = f"{facts.n_stale} of {facts.n_items} do not hold: {named}"
        return Finding("labels", False, found)
    found = f"{facts.n_items} items of evidence"
    if not facts.n_items:
        found = "no labels of evidence"
    elif not facts.n_chunks:
        found += "; no corpus to check them by"
    elif facts.n_quoted + facts.n_absent == facts.n_items:
        found += ", every quote where its label says"
    elif facts.n_quoted:
        found += f", {facts.n_quoted} with a quote, each where its label says"
    else:
        found += ", none with a quote to check"
    found += f"; {facts.n_absent} say that the corpus lacks them" if facts.n_absent else ""
    found += f"; {facts.n_unplaced} lie in no chunk" if facts.n_unplaced else ""
    return Finding("labels", True, found)


def _splits(entry: Entry, facts: Facts) -> list[Finding]:
    wanted = wanted_splits(entry)
    found = ", ".join(f"{n} {split or 'without a split'}" for split, n in facts.splits.items())
    gone = [split for split in wanted if not facts.splits[split]]
    if gone:
        return [Finding("splits", False, f"no case of split {' or '.join(gone)}: {found}")]
    return [Finding("splits", True, found)]


def _in_domain(entry: Entry, facts: Facts) -> list[Finding]:
    """What only a suite that sets defaults must have."""
    if not entry.kind.startswith(IN_DOMAIN):
        return []
    gone = [kind for kind in MANDATORY if kind not in facts.kinds]
    found = f"{len(facts.kinds)} query types"
    kinds = Finding("types", not gone, f"none of type {' or '.join(gone)}" if gone else found)
    unsaid = facts.origins[""]
    origin = ", ".join(f"{n} rows of origin {name}" for name, n in facts.origins.items())
    reviewed = "not said" if facts.n_reviewed is None else f"{facts.n_reviewed} of {facts.n_rows}"
    said = Finding("origin", not unsaid and facts.n_reviewed is not None,
                   f"{origin}; reviewed by a person: {reviewed}")  # fmt: skip
    scale = (
        f"{facts.n_documents} documents, {facts.n_chunks} chunks, {facts.n_cases} cases: "
        + (f"stage {facts.stage}" if facts.stage else "below stage 1")
    )  # fmt: skip
    return [kinds, said, Finding("scale", facts.stage > 0, scale)]
