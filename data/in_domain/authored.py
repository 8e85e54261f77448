"""The documents and cases as their authors wrote them: TOML, read and checked."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from ragcore import schema
from ragcore.wording import overlap, shared_words

HERE = Path(__file__).parent
LANGS = ("en", "zh")
FAMILIES = ("plans", "records", "access", "releases", "service")
TYPES = (
    "exact-keyword", "semantic", "paraphrase", "single-hop", "multi-chunk", "multi-document",
    "entity-number-version", "hard-negative", "unanswerable", "source-scoped", "citation-required",
)  # fmt: skip
STATES = ("answer", "abstain", "escalate")
SEMANTIC = 1 / 3
"""Share of a semantic question's content words that its evidence may have."""
_GAP = 2  # code points between two blocks of a document


@dataclass(frozen=True)
class Document:
    """A document: its settings as they are in the file, its blocks by language."""

    about: dict[str, Any]
    blocks: list[dict[str, Any]]

    @property
    def id(self) -> str:
        """Without the language."""
        return self.about["doc_id"]

    def places(self, lang: str) -> Iterator[tuple[int, int, str]]:
        """Start, end and text of every block, in code points of the document."""
        start = 0
        for block in self.blocks:
            text = block[lang].strip()
            yield start, start + len(text), text
            start += len(text) + _GAP


def documents() -> dict[str, Document]:
    """All documents by id, in the order of their names."""
    out = {}
    for path in sorted((HERE / "documents").glob("*.toml")):
        about = tomllib.loads(path.read_text("utf-8"))
        blocks = about.pop("block", [])
        out[about.get("doc_id", path.stem)] = Document(about, blocks)
    return out


def cases(family: str) -> list[dict[str, Any]]:
    """The cases of a family, as they are written."""
    path = HERE / "questions" / f"{family}.toml"
    return tomllib.loads(path.read_text("utf-8"))["case"] if path.is_file() else []


def complaints(family: str) -> Iterator[str]:
    """What is wrong with the files of a family, a sentence each."""
    known = documents()
    own = [one for one in known.values() if one.about.get("source_family") == family]
    for one in own:
        for said in _of_document(one):
            yield f"{one.id}: {said}"
    listed = cases(family)
    for name, n in Counter(one.get("id") for one in listed).items():
        if n > 1 or not str(name).startswith(f"{family}-"):
            yield f"case {name}: id stands {n} times, or does not begin with {family}-"
    for one in listed:
        for said in _of_case(one, known):
            yield f"{one.get('id')}: {said}"


def _of_document(one: Document) -> Iterator[str]:
    wanted = ("doc_id", "version", "valid_from", "authority", "source_family", "topic", "form")
    for key in wanted:
        if key not in one.about:
            yield f"no {key}"
    for key in ("valid_from", "valid_until"):
        if key in one.about and not isinstance(one.about[key], date):
            yield f"{key} is no date"
    for lang in LANGS:
        if not one.about.get("title", {}).get(lang):
            yield f"no title.{lang}"
        texts = [str(block.get(lang, "")).strip() for block in one.blocks]
        for i, text in enumerate(texts):
            if not text:
                yield f"block {i} has no {lang}"
        for text, n in Counter(texts).items():
            if n > 1:
                yield f"{n} blocks are the same in {lang}: {text[:40]!r}"
    if len(one.blocks) < 14:
        yield f"{len(one.blocks)} blocks, fewer than 14"


def _of_case(one: dict[str, Any], known: dict[str, Document]) -> Iterator[str]:
    kinds, state = one.get("type", []), one.get("expected_state")
    for kind in kinds:
        if kind not in TYPES:
            yield f"type {kind!r} is none of {', '.join(TYPES)}"
    if not kinds:
        yield "no type"
    if one.get("split") not in ("validation", "test"):
        yield f"split {one.get('split')!r} is neither validation nor test"
    if state not in STATES:
        yield f"expected_state {state!r} is none of {', '.join(STATES)}"
    if not isinstance(one.get("as_of"), date) or not one.get("principals"):
        yield "as_of must be a date, and principals not empty"
    if not isinstance(one.get("answerable"), bool):
        yield "answerable must be true or false"
    if (state == "abstain") == bool(one.get("answerable")):
        yield f"answerable {one.get('answerable')} with expected_state {state}"
    if "source-scoped" in kinds and "topic" not in one:
        yield "source-scoped without topic"
    if "unanswerable" in kinds and (one.get("answerable") or one.get("evidence")):
        yield "unanswerable, yet answerable or with evidence"
    for lang in LANGS:
        if not one.get("question", {}).get(lang) or not one.get("reference", {}).get(lang):
            yield f"no question.{lang} or reference.{lang}"
        if any(not claim.get(lang) for claim in one.get("claim", [])):
            yield f"a claim without {lang}"
    evidence = one.get("evidence", [])
    for item in evidence:
        yield from _of_item(item, one, known)
    needed = [item for item in evidence if item.get("required")]
    if one.get("answerable") and not needed:
        yield "answerable without required evidence"
    if not one.get("answerable") and needed:
        yield "not answerable, yet evidence is required"
    if state == "escalate" and {item.get("role") for item in needed} != {"conflicting"}:
        yield "a conflict must require its conflicting items, and only those"
    places = {(item.get("doc"), item.get("block")) for item in needed}
    if "multi-chunk" in kinds and len(places) < 2:
        yield f"multi-chunk, with {len(places)} required blocks"
    if "multi-document" in kinds and len({doc for doc, _ in places}) < 2:
        yield "multi-document, with one required document"
    if "single-hop" in kinds and len(places) > 1:
        yield f"single-hop, with {len(places)} required blocks"
    yield from _of_wording(one, known, needed)


def _of_item(
    item: dict[str, Any], one: dict[str, Any], known: dict[str, Document]
) -> Iterator[str]:
    document, block = known.get(item.get("doc", "")), item.get("block")
    if document is None:
        yield f"evidence in {item.get('doc')!r}, which is no document"
        return
    if not isinstance(block, int) or not 0 <= block < len(document.blocks):
        yield f"evidence in block {block} of {item['doc']}, which has {len(document.blocks)}"
        return
    for lang in LANGS:
        quote = item.get("quote", {}).get(lang)
        if not quote or quote not in document.blocks[block][lang]:
            where = [i for i, b in enumerate(document.blocks) if quote and quote in b[lang]]
            yield f"quote {quote!r} is not in block {block} of {item['doc']} (it is in {where})"
    if item.get("role") not in schema.ROLES or not isinstance(item.get("required"), bool):
        yield f"role {item.get('role')!r}, required {item.get('required')!r}"
    if item.get("relevance") not in (0, 1, 2, 3):
        yield f"relevance {item.get('relevance')!r}"
    if (item.get("role") in ("stale", "forbidden")) != (item.get("relevance") == 0):
        yield f"role {item.get('role')} with relevance {item.get('relevance')}"
    if "claim" in item and not 0 <= item["claim"] < len(one.get("claim", [])):
        yield f"claim {item['claim']} of {len(one.get('claim', []))}"
    start, end = document.about["valid_from"], document.about.get("valid_until", date.max)
    if item.get("required") and isinstance(one.get("as_of"), date):
        if not start <= one["as_of"] < end:
            yield f"{item['doc']} is required, and not valid at {one['as_of']}"
        acl = document.about.get("acl")
        if acl and not set(acl) & set(one.get("principals", [])):
            yield f"{item['doc']} is required, and {one.get('principals')} may not see it"


def _of_wording(
    one: dict[str, Any], known: dict[str, Document], needed: list[dict[str, Any]]
) -> Iterator[str]:
    """Whether the wording is what its type says: paraphrases share nothing with their blocks."""
    kinds = one.get("type", [])
    if not {"paraphrase", "semantic"} & set(kinds):
        return
    for lang in LANGS:
        try:
            texts = [known[item["doc"]].blocks[item["block"]][lang] for item in needed]
        except (KeyError, IndexError):
            return
        question = one.get("question", {}).get(lang, "")
        if "paraphrase" in kinds and (common := shared_words(question, texts)):
            yield f"paraphrase ({lang}) shares {', '.join(sorted(common))}"
        shared, n = overlap(question, texts)
        if "semantic" in kinds and shared > SEMANTIC * n:
            common = shared_words(question, texts)
            yield f"semantic ({lang}) shares {shared} of {n}: {', '.join(sorted(common))}"
