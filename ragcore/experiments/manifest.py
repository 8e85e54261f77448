"""The manifests of rows: every setting, so that two differ by what was changed and no more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ragcore.errors import InputError
from ragcore.experiments.config import Config
from ragcore.experiments.materials import Materials
from ragcore.experiments.recording import Recording
from ragcore.experiments.rows import Row
from ragcore.experiments.setups import PLACES, Setup
from ragcore.search_settings import BM25, DENSE

_SEARCHED = {
    "k1": ("bm25", "k1"), "b": ("bm25", "b"), "variant": ("bm25", "variant"),
    "lengths": ("bm25", "lengths"), "count_repeats": ("bm25", "count_repeats"),
    "ef": ("ann", "ef_search"), "filters": ("", "filters"), "filter_when": ("", "filter_when"),
}  # fmt: skip
"""Settings that a search fixes, and where a recorded run says them."""
_OF_CHANNEL = {"bm25": BM25, "ann": DENSE}


def manifest_of(
    config: Config, setup: Setup, name: str, row: Row | None, materials: Materials,
    recording: Recording, reranker: str | None,
) -> dict[str, Any]:  # fmt: skip
    """The manifest of a row's run.

    What a search, a corpus and a model are stands there whether the strategy uses it or not; which
    recording it was replayed from is `replay`, and no difference.
    """
    out = setup.manifest()
    out |= {
        "run": name, "suite": config.suite.name, "split": config.split, "reranker": reranker,
        "timing": recording.manifest.get("timing", "each"),
        "concurrency": recording.manifest.get("concurrency", 1),
        "replay": {"label": recording.label(setup), "depth": recording.depth},
    }  # fmt: skip
    chunking: dict[str, Any] = {"name": setup.chunking or "as the suite"}
    if setup.chunking:
        chunking |= config.cuts[setup.chunking].said()
    index = materials.of(setup.chunking).index
    if index is not None:
        chunking["index"] = {
            "generation": index.generation, "corpus": index.manifest["corpus"]["sha256"],
            "n_chunks": index.n_chunks,
        }  # fmt: skip
    elif recording.pool.generation:
        chunking["index"] = {"generation": recording.pool.generation}
    if (index := materials.of("").index) is not None:  # all chunkings are indexed alike
        said = index.manifest
        if index.has_text:
            out["bm25"]["analyzer"] = said["lexical"]["analyzer"]
        if index.has_vectors:
            out["dense"] = {"metric": said["dense"]["metric"]}
        if index.has_graph:
            own = said["hnsw"]
            out["ann"] |= {key: own[key] for key in ("M", "ef_construction")}
    out["chunking"] = chunking
    if row is not None:
        out["baseline"] = row.anchor
        key = row.keys[0] if row.keys else ""
        out["single_change"] = "threshold" if key.startswith("threshold.") else (
            PLACES.get(key, key))  # fmt: skip
    return out


def adopted(config: Config, manifest: dict[str, Any]) -> Setup:
    """Production with what a recorded run says of its search, where the sweep says nothing.

    Raises
    ------
    InputError
        If both say it, and differ.
    """
    given: dict[str, Any] = {}
    for key in _SEARCHED:
        found = _recorded(manifest, key)
        if found is None:
            continue
        own = getattr(config.production, key)
        if key in config.stated and own != found:
            raise InputError(
                config.where, f"production has {key} = {own!r}",
                f"{found!r}, which the recorded run was searched with",
                "leave run out, so that the suite is searched, or record another run",
            )  # fmt: skip
        given[key] = found
    return replace(config.production, **given)


def otherwise(manifest: dict[str, Any], production: Setup, setup: Setup) -> str:
    """Why a setup needs another search than the recorded one; "" if it does not."""
    for key, (part, _) in _SEARCHED.items():
        used = _OF_CHANNEL.get(part)
        if used is not None and used not in setup.channels:
            continue
        own, found = getattr(setup, key), _recorded(manifest, key)
        base = getattr(production, key) if found is None else found
        if own != base:
            return f"{key} {own!r} needs a search, and the recorded run was searched with {base!r}"
    return ""


def _recorded(manifest: dict[str, Any], key: str) -> Any:
    part, name = _SEARCHED[key]
    own = manifest.get(part) if part else manifest
    found = own.get(name) if isinstance(own, dict) else None
    return tuple(found) if isinstance(found, list) else found
