"""What `fuse` gives: the case batch, what was noticed about its lists, and the file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import case_batch, provenance, schema
from ragcore.channels import HAS, LACKS, UNRECORDED, Cases, Channel, id_column_of, is_binary
from ragcore.formats import arrow
from ragcore.suites import manifest_of

NAMED = 5  # cases that a note names
USUAL_DEPTH = 10  # of the agreement of lists, where nothing says what is kept


@dataclass
class Settings:
    """How lists are fused; see `fuse`."""

    method: str
    rrf_k: float
    weights: tuple[float, ...]
    normalise: str
    depth: int | None
    name: str
    stages: bool
    overlap_depth: int | None
    threads: int
    agree_depth: int = 0

    def find_overlap_depth(self, lists: Sequence[Channel]) -> None:
        """Decide at which depth lists are compared."""
        cut = self.cut(lists)
        self.agree_depth = (cut or USUAL_DEPTH) if self.overlap_depth is None else (
            self.overlap_depth)  # fmt: skip

    def cut(self, lists: Sequence[Channel]) -> int | None:
        """Documents that the reader gets: `depth`, else what all manifests call `context_k`."""
        return self.depth or whole_number(common([one.manifest for one in lists], "context_k"))

    def sentence(self, n_lists: int) -> str:
        """How, on one line."""
        how = f"rrf-k {self.rrf_k:g}" if self.method == "rrf" else f"normalise {self.normalise}"
        weights = ", ".join(f"{weight:g}" for weight in self.weights)
        cut = "all" if self.depth is None else str(self.depth)
        return (
            f"policy: method {self.method}, {how}, weights {weights}, lists {n_lists}, depth {cut}"
        )

    def manifest(self, lists: Sequence[Channel]) -> dict[str, Any]:
        """What the fused run did, and what all its runs agree on."""
        manifests = [one.manifest for one in lists]
        out: dict[str, Any] = {"run": self.name}
        for key in ("suite", "candidate_k"):
            if (value := common(manifests, key)) is not None:
                out[key] = value
        if self.depth is not None:
            out["context_k"] = self.depth
        how: dict[str, Any] = {"method": self.method}
        if self.method == "rrf":
            out["rrf_k"] = int(self.rrf_k) if self.rrf_k.is_integer() else self.rrf_k
        else:
            how["normalise"] = self.normalise
        how["weights"] = {one.name: weight for one, weight in zip(lists, self.weights, strict=True)}
        how["inputs"] = [
            {"name": one.name, "stage": one.stage or "ranked",
             "source": Path(one.path).name if one.path else "memory",
             **({"run": one.manifest["run"]} if one.manifest.get("run") else {})}
            for one in lists
        ]  # fmt: skip
        return out | {"fusion": how}


def common(manifests: Sequence[dict[str, Any]], key: str) -> Any:
    """The value of a key that all manifests have and share, else None."""
    values = [manifest.get(key) for manifest in manifests]
    return values[0] if values and all(value == values[0] for value in values) else None


def whole_number(value: Any) -> int | None:
    """`value` if it is an integer above 0, else None."""
    return value if type(value) is int and value > 0 else None


@dataclass(frozen=True)
class Facts:
    """What one list was.

    Attributes
    ----------
    name, weight : of the list.
    n_cases, n_empty : cases that have it, and those of them where it holds nothing.
    n_rows, longest : distinct documents of all cases; of the longest list.
    repeated : rows left out since their document stood above in the same list.
    """

    name: str
    n_cases: int
    n_empty: int
    n_rows: int
    longest: int
    repeated: int
    weight: float


@dataclass(frozen=True)
class Agreement:
    """How far two lists agree: means over `n_cases`; NaN for none.

    The cases are those that have both lists, and not both empty.

    Attributes
    ----------
    first, second : names of the lists.
    depth : where both are cut.
    jaccard : common / distinct documents.
    overlap : common / depth.
    rbo : rank-biased overlap, extrapolated, p = 0.9.
    """

    first: str
    second: str
    depth: int
    n_cases: int
    jaccard: float
    overlap: float
    rbo: float

    def sentence(self) -> str:
        """The finding, for people."""
        return (
            f"{self.first} and {self.second} agree: Jaccard@{self.depth} {self.jaccard:.4f}, "
            f"overlap@{self.depth} {self.overlap:.4f}, RBO@{self.depth} (p=0.9) {self.rbo:.4f}, "
            f"over {_cases(self.n_cases)}"
        )


@dataclass
class Fused:
    """One ranking a case, of several lists.

    Attributes
    ----------
    table : the case batch, columns of `schema.RUNS`: case_id, lang and repeat where a run has
        them, ranked with fused scores, and stages with every input list.
    settings : how.
    lists : what each list was, in their order.
    agreements : of each pair of lists.
    warnings : what probably should not be so.
    notes : what is worth knowing.
    inputs : of each list its file, or a name for what came from memory.
    """

    table: pa.Table
    settings: Settings
    lists: list[Facts]
    agreements: list[Agreement]
    warnings: list[str]
    notes: list[str]
    inputs: list[str]

    def write(self, path: str | PathLike[str]) -> Path:
        """Write the case batch as an Arrow file, with the hashes of its inputs; gives the path.

        Raises
        ------
        InputError
            If it cannot be written; then nothing is there.
        """
        manifest = manifest_of(self.table)
        options = {
            key: str(value) for key, value in vars(self.settings).items()
            if key not in ("threads", "name")
        }  # fmt: skip
        files = list(dict.fromkeys(self.inputs))
        record = provenance.record(files, options, self.settings.threads)
        noted = dict(zip(files, json.loads(record)["inputs"], strict=True))
        for one, file in zip(manifest["fusion"]["inputs"], self.inputs, strict=True):
            if "sha256" in noted[file]:
                one["sha256"] = noted[file]["sha256"]
        columns = {name: self.table[name] for name in self.table.column_names}
        table = case_batch.case_batch(columns, manifest, {schema.PROVENANCE_KEY: record})
        target = Path(path)
        case_batch.write_case_batch(table, target)
        return target


def assemble(
    settings: Settings,
    lists: Sequence[Channel],
    cases: Cases,
    blocks: Sequence[Any],
    lengths: Any,
    counts: Any,
) -> pa.Table:
    """The case batch of what the kernel left.

    Parameters
    ----------
    blocks : `fuse.Block`, in the order of the cases.
    lengths : (n_cases, n_lists), distinct documents of every list.
    counts : (n_cases,), documents of every fused list.
    """
    text = not any(is_binary(one) for one in lists)
    if not text:
        pieces = [b.ids for b in blocks] + [b.list_ids for b in blocks if b.list_ids]
        text = all(
            case_batch.is_text(case_batch.id_column(ends, data, n, False))
            for ends, data, n in pieces
        )
    unrecorded = ~(cases.presence == HAS).any(1)
    scored = np.array([one.scored for one in lists])
    ranked, staged = [], []
    for block in blocks:
        part = slice(block.begin, block.end)
        ends, data, n = block.ids
        ids = case_batch.id_column(ends, data, n, text)
        ranked.append(
            case_batch.ranked_lists(
                counts[part], ids, arrow.numbers(block.scores), unrecorded[part]
            )
        )
        if block.list_ids is None:
            continue
        ends, data, n = block.list_ids
        ids = case_batch.id_column(ends, data, n, text)
        scores = arrow.numbers(block.list_scores)
        if not scored.all():
            known = np.repeat(np.tile(scored, block.end - block.begin), lengths[part].ravel())
            bits = pa.py_buffer(np.packbits(known, bitorder="little"))
            scores = pa.Array.from_buffers(pa.float64(), len(ids), [bits, scores.buffers()[1]])
        present = cases.presence[part] == HAS
        names = [one.name for one in lists]
        staged.append(case_batch.staged_lists(names, present, lengths[part], ids, scores))
    columns: dict[str, Any] = {"case_id": id_column_of(cases.ids)}
    if cases.lang is not None:
        columns["lang"] = cases.lang
    if cases.repeat is not None:
        columns["repeat"] = cases.repeat
    columns["ranked"] = ranked
    if staged:
        columns["stages"] = staged
    return case_batch.case_batch(columns, settings.manifest(lists))


def notes_on(
    settings: Settings,
    lists: Sequence[Channel],
    cases: Cases,
    facts: Sequence[Facts],
    agreements: Sequence[Agreement],
) -> tuple[list[str], list[str]]:
    """Warnings, and notes."""
    warnings, notes = _narrow(settings, lists, facts)
    n = len(lists)
    held = (cases.presence != LACKS).sum(1)
    for k in range(1, n):
        some = np.flatnonzero(held == k)
        if some.size:
            what = "case is" if some.size == 1 else "cases are"
            notes.append(f"{some.size} {what} in {k} of {n} lists: {_named(cases, some)}")
    for c, fact in enumerate(facts):
        if fact.repeated:
            notes.append(
                f"{fact.name}: {fact.repeated} rows repeat a document that stands above in the "
                "same list; each counts once, at its best rank"
            )
        if fact.n_empty:
            notes.append(f"{fact.name}: no result for {fact.n_empty} of {_cases(fact.n_cases)}")
        gone = np.flatnonzero(cases.presence[:, c] == UNRECORDED)
        if gone.size:
            notes.append(
                f"{fact.name}: no list recorded for {_cases(gone.size)}: {_named(cases, gone)}"
            )
    notes += [pair.sentence() for pair in agreements if pair.n_cases]
    return warnings, notes


def _cases(n: int) -> str:
    return f"{n} case" if n == 1 else f"{n} cases"


def _named(cases: Cases, which: Any) -> str:
    shown = [cases.name(int(q)) for q in which[:NAMED]]
    return ", ".join(shown) + (", ..." if len(which) > NAMED else "")


def _narrow(
    settings: Settings, lists: Sequence[Channel], facts: Sequence[Facts]
) -> tuple[list[str], list[str]]:
    """Whether lists were cut before they were fused, as far as their lengths tell."""
    cut = settings.cut(lists)
    if cut is None:
        return [], []
    warnings = []
    for one, fact in zip(lists, facts, strict=True):
        wide = one.manifest.get("candidate_k")
        if isinstance(wide, dict):
            wide = wide.get(one.stage or one.name)
        wide = whole_number(wide)
        if wide is not None and wide > cut >= fact.longest:
            warnings.append(
                f"narrow fusion: no list of {fact.name} is longer than {fact.longest}, which is "
                f"within the cut at {cut}, though its manifest says candidate_k {wide}; fuse whole "
                "lists, and cut once, after fusion"
            )
    if not warnings and settings.depth and all(fact.longest <= cut for fact in facts):
        return [], [
            f"no list is longer than the cut at {cut}: if they were cut to it before, fuse wider "
            "ones"
        ]
    return warnings, []
