"""What Mosaic Desk declares, and its rules in plain Python over the Arrow files alone.

A layer is P (pass), F (fail), G (the corpus lacks it) or N (not applicable).
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ragcore import schema
from tables import read_ipc

ROOT = Path(__file__).resolve().parents[1]
SUITE = ROOT / "data" / "mosaic"
LANGS = ("en", "zh")
LAYERS = (
    "corpus", "query", "retrieval", "ranking", "context", "generation", "citation", "evaluation",
)  # fmt: skip
NEGATORS = {
    "en": re.compile(r"\b(?:no|not|without|never|none|cannot)\b", re.I),
    "zh": re.compile(r"没有|[不无未勿]"),
}
NAMED = re.compile(r"[A-Z]+\d+|\d+(?:\.\d+)?")  # models and numbers

Row = dict[str, Any]
Key = tuple[str, str]


DECLARED = tomllib.loads((SUITE / "suite.toml").read_text(encoding="utf-8"))
FILES = tuple(DECLARED["files"])
TABLES = {name: read_ipc(SUITE / name) for name in FILES}
RUNS = tuple(Path(name).stem for name in FILES if name.startswith("runs/"))
CASES: dict[Key, Row] = {
    (row["case_id"], row["lang"]): row for row in TABLES["cases.arrow"].to_pylist()
}
CASE_IDS = tuple(dict.fromkeys(case_id for case_id, _ in CASES))
CHUNKS: dict[str, Row] = {row["chunk_id"]: row for row in TABLES["chunks.arrow"].to_pylist()}
SNAPSHOTS: Row = json.loads(TABLES["chunks.arrow"].schema.metadata[b"snapshots"])


def _by_case(name: str) -> dict[Key, Row]:
    rows = TABLES[name].to_pylist()
    return {(r["case_id"], r["lang"]): {**r, "stages": dict(r["stages"])} for r in rows}


TRACES: dict[str, dict[Key, Row]] = {run: _by_case(f"runs/{run}.arrow") for run in RUNS}
REPAIRED = _by_case("repaired.arrow")
JUDGMENTS: list[Row] = [
    row for name in FILES if name.startswith("judgments/") for row in TABLES[name].to_pylist()
]


def manifest(name: str) -> Row:
    return json.loads(TABLES[name].schema.metadata[schema.MANIFEST_KEY])


MANIFEST = manifest("runs/observed.arrow")


def text(unit: str, lang: str) -> str:
    return CHUNKS[unit]["text" if lang == "en" else f"text_{lang}"]


# --- verdicts


def verdicts(run: str, key: Key, relation: str) -> dict[tuple[int | None, str], dict[str, str]]:
    """Per claim and evidence: what each judge says."""
    out: dict[tuple[int | None, str], dict[str, str]] = {}
    for row in JUDGMENTS:
        if (row["run"], row["case_id"], row["lang"], row["relation"]) == (run, *key, relation):
            item = row["claim"], " ".join(row["evidence"])
            assert (row["rung"], row["adjudicated"]) == ("rule", False)
            out.setdefault(item, {})[f"{row['judge']} {row['judge_version']}"] = row["verdict"]
    return out


def resolved(run: str, key: Key, relation: str) -> dict[tuple[int | None, str], str]:
    """One verdict an item; equals of one rung that differ leave it disputed."""
    return {
        item: said.pop() if len(said := set(by.values())) == 1 else "disputed"
        for item, by in verdicts(run, key, relation).items()
    }


def served(run: str, key: Key) -> str:
    """Whether the asker got what was needed: all claims, each backed, each rightly cited."""
    relations = ("covered", "entailed", "cites") if CASES[key]["claims"] else ("correct",)
    found = [v for relation in relations for v in resolved(run, key, relation).values()]
    if "no" in found or not found:
        return "no"
    return "disputed" if "disputed" in found else "yes"


# --- layers


def labelled(key: Key, *roles: str) -> list[Row]:
    return [item for item in CASES[key]["evidence"] if item["role"] in roles]


def required(key: Key) -> list[Row]:
    return [item for item in CASES[key]["evidence"] if item["required"]]


def ids(items: Iterable[Row]) -> list[str]:
    return [item["chunk_id"] if "chunk_id" in item else item["id"] for item in items]


def seen_by(unit: str, key: Key) -> bool:
    acl = CHUNKS[unit]["acl"]
    return acl is None or bool(set(acl) & set(CASES[key]["principals"]))


def forbidden(trace: Row, key: Key) -> set[str]:
    """Units in candidates, context or citations that the asker may not see, or so labelled."""
    lists = [*trace["stages"].values(), trace["ranked"], trace["context"], trace["citations"]]
    shown = {unit for items in lists for unit in ids(items)}
    return {u for u in shown if not seen_by(u, key)} | shown & set(ids(labelled(key, "forbidden")))


def hard(trace: Row, key: Key) -> list[str]:
    """Violations that no average offsets."""
    case = CASES[key]
    text = trace["final"]["text"] or ""
    supplied = set(ids(trace["context"]))
    found = {
        "forbidden unit": bool(forbidden(trace, key)),
        "prohibited claim": any(p in text for p in case["prohibited"]),
        "prohibited effect": bool(set(trace["effects"]) & set(case["prohibited"])),
        "fabricated citation": not set(ids(trace["citations"])) <= supplied,
        "answered what must be refused": trace["final"]["state"] == "answer"
        and case["expected_state"] in ("abstain", "fail_closed"),
    }
    return [name for name, yes in found.items() if yes]


def intact(item: Row, trace: Row) -> bool:
    """Whether the labelled line lies inside a packed stretch of its unit."""
    return any(
        p["id"] == item["chunk_id"] and p["start"] <= item["start"] and item["end"] <= p["end"]
        for p in trace["context"]
    )


def corpus(key: Key) -> str:
    if not required(key):
        return "N"
    return "P" if all(item["in_snapshot"] for item in required(key)) else "G"


def query(key: Key, trace: Row) -> str:
    """Models, numbers and negations of the question are in the query."""
    asked, got = CASES[key]["question"], trace["query"]
    kept = all(re.search(rf"\b{re.escape(w)}\b", got, re.ASCII) for w in NAMED.findall(asked))
    negator = NEGATORS[key[1]]
    return "P" if kept and len(negator.findall(asked)) <= len(negator.findall(got)) else "F"


def candidates(trace: Row) -> list[str]:
    return ids(trace["stages"]["fused"][: MANIFEST["candidate_k"]])


def retrieval(key: Key, trace: Row) -> str:
    if forbidden(trace, key) & set(candidates(trace)):
        return "F"
    if corpus(key) != "P":
        return "N"
    return "P" if set(ids(required(key))) <= set(candidates(trace)) else "F"


def ranking(key: Key, trace: Row) -> str:
    """Of candidates that are labelled: supporting ones before the cutoff, not others alone."""
    if corpus(key) != "P":
        return "N"
    top, wanted = set(ids(trace["ranked"][: MANIFEST["context_k"]])), set(ids(required(key)))
    if wanted & set(candidates(trace)):
        return "P" if wanted <= top else "F"
    others = {item["chunk_id"] for item in CASES[key]["evidence"] if not item["required"]}
    return "F" if others & top else "N"


def context(key: Key, trace: Row) -> str:
    """What was selected is packed whole, and nothing forbidden is."""
    top = set(ids(trace["ranked"][: MANIFEST["context_k"]]))
    if forbidden(trace, key) & set(ids(trace["context"])):
        return "F"
    due = [item for item in required(key) if item["chunk_id"] in top]
    return "P" if all(intact(item, trace) for item in due) else "F"


def generation(key: Key, trace: Row, run: str = "observed") -> str:
    """A silent proposal had nothing to say; another has the expected state and backed claims."""
    state, expected = trace["proposed"]["state"], CASES[key]["expected_state"]
    if state in ("abstain", "fail_closed"):
        unused = [item for item in required(key) if intact(item, trace)]
        return "P" if state == expected or not unused else "F"
    backed = set(resolved(run, key, "entailed").values()) == {"yes"}
    return "P" if state == expected and backed else "F"


def resolves(citation: Row, key: Key) -> bool:
    """The revision exists, the quote is exact, and the unit is labelled to support."""
    unit, (_, lang) = citation["id"], key
    start, end = citation["start"], citation["end"]
    return (
        CHUNKS[unit]["doc_version"] == citation["doc_version"]
        and text(unit, lang)[start:end] == citation["quote"]
        and unit in ids(labelled(key, "supporting"))
    )


def citation(key: Key, trace: Row, run: str = "observed") -> str:
    factual = {i for i, claim in enumerate(trace["claims"]) if claim["factual"]}
    if not factual:
        return "N"
    cited = {c["claim"] for c in trace["citations"]}
    hold = set(resolved(run, key, "cites").values()) == {"yes"}
    right = all(resolves(c, key) for c in trace["citations"])
    return "P" if factual <= cited and hold and right else "F"


def flips(key: Key) -> bool:
    """Whether another evaluator says otherwise of the same output."""
    relations = ("correct", "covered", "entailed", "cites")
    return any(resolved("observed", key, r) != resolved("frozen_output", key, r) for r in relations)


def evaluation(key: Key) -> str:
    relations = ("correct", "covered", "entailed", "cites")
    said = {v for r in relations for v in resolved("observed", key, r).values()}
    return "F" if "disputed" in said or flips(key) else "P"


def layers(key: Key) -> str:
    """The eight states of the observed trace, in order."""
    trace = TRACES["observed"][key]
    states = (
        corpus(key), query(key, trace), retrieval(key, trace), ranking(key, trace),
        context(key, trace), generation(key, trace), citation(key, trace), evaluation(key),
    )  # fmt: skip
    return " ".join(states)


# --- interventions, attribution, joint matrix


def outcome(key: Key, *runs: str) -> str | None:
    """Whether a replay gives what the observed trace did not; None if none is recorded."""
    recorded = [run for run in runs if key in TRACES[run]]
    if not recorded:
        return None
    assert served("observed", key) != "yes"
    return "recovers" if any(served(run, key) == "yes" for run in recorded) else "fails"


def interventions(key: Key) -> tuple[str | None, str | None, str | None]:
    """Oracle context, frozen context, frozen output."""
    output = "flips" if flips(key) else "same"
    return (
        outcome(key, "oracle_context"),
        outcome(key, "frozen_model", "frozen_validator"),
        output if key in TRACES["frozen_output"] else None,
    )


def attribution(key: Key) -> tuple[str, str]:
    """(layer or finding, status)."""
    if hard(TRACES["observed"][key], key):
        return "hard gate", "violation"
    oracle, frozen, output = interventions(key)
    if output == "flips":
        return "evaluation", "disputed"
    first = next(
        (name for name, s in zip(LAYERS, layers(key).split(), strict=True) if s in "FG"), "none"
    )
    if oracle is None and frozen is None:
        return first, "hypothesis"
    side: tuple[str, ...] = ()
    if oracle == "recovers":
        side = LAYERS[:5]
    elif frozen == "recovers":
        side = LAYERS[5:7]
    return first, "attributed" if first in side else "uncertain"


MATRIX = {
    ("supporting", "intact", "supported"): "candidate_pass",
    ("supporting", "intact", "unsupported"): "generation_use_failure",
    ("supporting", "truncated", "wrong"): "assembly_failure",
    ("absent", "no evidence", "abstain"): "retrieval_gap_correct_abstention",
    ("conflicting", "preserved", "escalate"): "bounded_pass_adjudicate",
}


def joint(key: Key) -> str:
    """The code of the joint matrix for the observed trace."""
    trace = TRACES["observed"][key]
    if forbidden(trace, key):
        return "authorization_failure"
    wanted, shown = required(key), set(ids(trace["context"]))
    found = "supporting" if set(ids(wanted)) <= set(candidates(trace)) else "absent"
    packed = [item for item in wanted if item["chunk_id"] in shown]
    if not shown:
        assembly = "no evidence"
    elif len(packed) < len(wanted):
        assembly = "without support"
    else:
        assembly = "intact" if all(intact(item, trace) for item in wanted) else "truncated"
    if trace["proposed"]["state"] == "abstain":
        said = "abstain"
    elif set(resolved("observed", key, "entailed").values()) == {"yes"}:
        said = "supported"
    else:
        said = "wrong" if assembly == "truncated" else "unsupported"
    return MATRIX.get((found, assembly, said), "unclassified")
