"""Names of measures: what each means, what it needs, and how it is written.

A name means one formula everywhere. ir_measures' notation (`nDCG@10`, `P(rel=2)@5`),
trec_eval's (`ndcg_cut_10`, `recip_rank`) and the usual nicknames all parse, and a measure
prints exactly as it was asked for.
"""

from __future__ import annotations

import ast
import difflib
import fnmatch
import math
import re
from dataclasses import replace
from functools import lru_cache
from typing import Any

from ragcore.errors import UsageError
from ragcore.measures import (
    abstention,
    citation,
    claims,
    context,
    corpus,
    generation,
    judging,
    outcomes,
    qasper,
    ranked,
    resources,
    retrieval,
    variants,
)
from ragcore.measures.definitions import Definition, Measure

MOST = 2**31 - 1
"""Greatest cut-off and grade."""
MOST_SCALE = 1000  # of ERR: 2**max must be a double
MOST_MAPPED = 65_535
"""Greatest grade that a map of gains may name."""


LAYERS = (
    ranked, corpus, retrieval, context, generation, claims, citation, abstention, outcomes,
    judging, resources, qasper,
)  # fmt: skip
"""Modules that define measures, in the order of the docs."""

_DEFINITIONS: dict[str, Definition] = {}
_NAMES: dict[str, str] = {}


def register(*definitions: Definition) -> None:
    """Enter definitions; a name or alias that is taken is a programming error."""
    for one in definitions:
        for name in (one.name, *one.aliases):
            key = name.lower()
            if key in _NAMES:
                raise ValueError(f"measure name {name!r} is taken by {_NAMES[key]!r}")
            _NAMES[key] = one.name
        _DEFINITIONS[one.name] = one


def _load() -> None:
    if not _DEFINITIONS:
        for layer in LAYERS:
            register(*layer.DEFINITIONS)


def definitions() -> list[Definition]:
    """Every formula, in the order of the docs."""
    _load()
    return list(_DEFINITIONS.values())


FAMILIES = {
    "P": ("P_{}", (5, 10, 15, 20, 30, 100, 200, 500, 1000)),
    "recall": ("recall_{}", (5, 10, 15, 20, 30, 100, 200, 500, 1000)),
    "ndcg_cut": ("ndcg_cut_{}", (5, 10, 15, 20, 30, 100, 200, 500, 1000)),
    "map_cut": ("map_cut_{}", (5, 10, 15, 20, 30, 100, 200, 500, 1000)),
    "relative_P": ("relative_P_{}", (5, 10, 15, 20, 30, 100, 200, 500, 1000)),
    "success": ("success_{}", (1, 5, 10)),
    "unj": ("unj_{}", (5, 10, 20)),
    "iprec_at_recall": (
        "iprec_at_recall_{:.2f}",
        (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    ),
    "Rprec_mult": ("Rprec_mult_{:.2f}", (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0)),
}
"""trec_eval's measures with several cut-offs: asked for by family, each prints its own name."""

_WITH_CUT = {
    "P": "P",
    "recall": "R",
    "ndcg_cut": "nDCG",
    "map_cut": "AP",
    "relative_P": "R_capped",
    "success": "Success",
    "unj": "Unjudged",
}
_FIXED = {
    "rbp": ("RBP", {"p": 0.9}),
    "set_relative_P": ("R_capped", {}),
}
_GEOMETRIC = {"gm_map": "AP", "GMAP": "AP", "gm_bpref": "Bpref"}


def parse(names: list[str] | tuple[str, ...], rel: int = 1) -> list[Measure]:
    """The measures that `names` ask for, families and globs spelled out, repeats left out.

    Parameters
    ----------
    names : in any of the notations.
    rel : least relevant grade where a name does not say.

    Raises
    ------
    UsageError
        If a name is unknown (with the nearest ones) or asks for what its formula has not.
    """
    _load()
    out: dict[str, Measure] = {}
    for name in names:
        for text in _expand(name.strip()):
            if text not in out:
                out[text] = _one(text, rel)
    return list(out.values())


def _expand(name: str) -> list[str]:
    family, dot, cuts = name.partition(".")
    if family in FAMILIES:
        pattern, default = FAMILIES[family]
        if not dot:
            return [pattern.format(k) for k in default]
        kind = float if "f}" in pattern else int
        try:
            return [pattern.format(kind(k)) for k in cuts.split(",")]
        except ValueError:
            raise UsageError(f"measure {name!r}: invalid cut-off {cuts!r}") from None
    if "*" in name or "?" in name:
        found = [n for n in _DEFINITIONS if "." in n and fnmatch.fnmatchcase(n, name)]
        if not found:
            raise UsageError(f"no measure matches {name!r}", "dotted names only: 'retrieval.*'")
        return found
    return [name]


POOLED = frozenset(
    ("P", "R", "R_capped", "SetP", "SetR", "Judged", "Unjudged", "retrieval.coverage")
)
"""Shares whose numerators and denominators may be added up over cases: `micro(...)`."""


def _pooled(text: str, inner: str, rel: int) -> Measure:
    """A share pooled over cases: sum of numerators over sum of denominators."""
    one = _one(inner.strip(), rel)
    may = one.definition.name in POOLED or one.definition.pooled
    if not may or one.aggregate != "mean":
        known = ", ".join(sorted({*POOLED, *(d.name for d in definitions() if d.pooled)}))
        raise UsageError(f"measure {text!r}: {inner} is no share to pool", f"one of {known}")
    if variants.kind_of(one):
        raise UsageError(f"measure {text!r}: a bound is no share to pool")
    return replace(one, text=text, aggregate="micro")


@lru_cache(maxsize=1024)
def _one(text: str, rel: int) -> Measure:
    if match := re.fullmatch(r"micro\((.*)\)", text):
        return _pooled(text, match[1], rel)
    try:
        name, k, params = _trec_eval(text) or _trec_eval_with(text) or _notation(text)
    except ValueError:  # 1.2.3, or digits without end
        raise UsageError(f"measure {text!r}: cannot read its number") from None
    key = _NAMES.get(name.lower())
    aggregate = ""
    if name in _GEOMETRIC:
        key, aggregate = _GEOMETRIC[name], "geometric"
    if key is None and name.replace("_", "").lower() in _NAMES:
        key = _NAMES[name.replace("_", "").lower()]
    if key is None:
        known = sorted({*_NAMES, *(n.lower() for n in (*_GEOMETRIC, *FAMILIES))})
        near = difflib.get_close_matches(name.lower(), known, n=3)
        hint = f"did you mean {', '.join(near)}?" if near else "ragcore explain lists them"
        raise UsageError(f"unknown measure {text!r}", hint)
    definition = _DEFINITIONS[key]
    if k is None and definition.cutoff == "needed":
        raise UsageError(f"measure {text!r} needs a cut-off", f"for example {text}@10")
    if k is not None and definition.cutoff == "none":
        raise UsageError(f"measure {text!r} takes no cut-off")
    if k is not None and not 1 <= k <= MOST:
        raise UsageError(f"measure {text!r}: invalid cut-off {k}", f"a cut-off is 1 to {MOST}")
    values = dict(definition.params)
    level = rel
    for param, value in params.items():
        if param == "rel":
            level = _whole(text, "rel", value)
        elif param in values:
            values[param] = value
        else:
            takes = ", ".join(["rel", *values])
            raise UsageError(f"measure {text!r} has no parameter {param!r}", f"it takes {takes}")
    level = max(_whole(text, "rel", level), 0)  # a grade below 0 is no judgement
    measure = Measure(text, definition, k or 0, level, values, aggregate or definition.aggregate)
    if values.get("ties") or values.get("holes"):
        variants.check(measure)
    return replace(measure, params=_checked(measure))


def _whole(text: str, name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise UsageError(f"measure {text!r}: {name}={value!r} is not an integer")
    if abs(value) > MOST:
        raise UsageError(f"measure {text!r}: {name}={value!r} is beyond {MOST}")
    return value


def _checked(measure: Measure) -> dict[str, Any]:
    """Parameters of the right kind, spellings of other tools translated."""
    params = dict(measure.params)
    dcg = params.pop("dcg", None)
    if dcg is not None and params.get("gain") in (None, "linear"):
        known = {"log2": "linear", "exp-log2": "exp"}
        if dcg not in known:
            raise UsageError(f"measure {measure.text!r}: dcg={dcg!r}", "'log2' or 'exp-log2'")
        params["gain"] = known[dcg]
    if "gain" in params and params["gain"] not in ("linear", "exp"):
        raise UsageError(f"measure {measure.text!r}: gain={params['gain']!r}", "linear or exp")
    for name, value in params.items():
        needed = name != "recall" or value is not None
        if name in ("p", "beta", "max", "multiple", "recall") and needed:
            _finite(measure.text, name, value)
        if name in ("weights", "points"):
            if not isinstance(value, (tuple, list)) or not value:
                raise UsageError(f"measure {measure.text!r}: {name}={value!r}", "numbers: (1, 0.5)")
            for one in value:
                _finite(measure.text, name, one)
    if "max" in params and not 1 <= params["max"] <= MOST_SCALE:
        raise UsageError(f"measure {measure.text!r}: max={params['max']}", f"1 to {MOST_SCALE}")
    if "p" in params and not 0 < params["p"] < 1:
        raise UsageError(f"measure {measure.text!r}: p={params['p']} is not between 0 and 1")
    if params.get("gains"):
        try:
            params["gains"] = {int(g): float(v) for g, v in dict(params["gains"]).items()}
        except (TypeError, ValueError):
            raise UsageError(
                f"measure {measure.text!r}: gains={params['gains']!r}", "gains={1: 0.3, 2: 0.9}"
            ) from None
        for grade, value in params["gains"].items():
            _finite(measure.text, "gains", value)
            if grade > MOST_MAPPED:
                most = f"{MOST_MAPPED} at most"
                raise UsageError(f"measure {measure.text!r}: grade {grade}", most)
    return params


def _finite(text: str, name: str, value: Any) -> None:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not abs(value) < math.inf:
        raise UsageError(f"measure {text!r}: {name}={value!r} is not a finite number")


def _trec_eval(text: str) -> tuple[str, int | None, dict[str, Any]] | None:
    """trec_eval's parameterised names, or None where `text` is none of them."""
    if text in _FIXED:
        name, params = _FIXED[text]
        return name, None, params
    if match := re.fullmatch(r"(\w+?)_(-?\d+)", text):
        kind = _WITH_CUT.get(match[1])
        if kind is not None:
            return kind, int(match[2]), {}
    if match := re.fullmatch(r"iprec_at_recall_([\d.]+)", text):
        return "IPrec", None, {"recall": float(match[1])}
    if match := re.fullmatch(r"Rprec_mult_([\d.]+)", text):
        return "Rprec", None, {"multiple": float(match[1])}
    if match := re.fullmatch(r"set_F_([\d.]+)", text):
        return "SetF", None, {"beta": float(match[1])}
    if match := re.fullmatch(r"utility_([-\d.,]+)", text):
        return "utility", None, {"weights": tuple(float(x) for x in match[1].split(","))}
    if match := re.fullmatch(r"11pt_avg_([\d.,]+)", text):
        return "11pt_avg", None, {"points": tuple(float(x) for x in match[1].split(","))}
    if match := re.fullmatch(r"ndcg_(-?\d+=[-\d.,=]+)", text):
        pairs = [pair.split("=") for pair in match[1].split(",")]
        return "nDCG", None, {"gains": {int(g): float(v) for g, v in pairs}}
    return None


def is_trec_eval(text: str) -> bool:
    """Whether a name is one of trec_eval's parameterised ones, with its cut-off inside."""
    return _trec_eval(text) is not None


def _trec_eval_with(text: str) -> tuple[str, int | None, dict[str, Any]] | None:
    """As `_trec_eval`, with parameters of ours after the name: ``ndcg_cut_10(ties=worst)``."""
    match = re.fullmatch(r"([^()@]+)\((.*)\)", text)
    found = _trec_eval(match[1]) if match else None
    if match is None or found is None:
        return None
    return found[0], found[1], found[2] | _arguments(text, match[2])


_NOTATION = re.compile(
    r"(?P<name>[A-Za-z0-9_.\-]+?)(?:\((?P<before>.*?)\))?(?:@(?P<cut>[^()]*))?(?:\((?P<after>.*)\))?"
)


def _notation(text: str) -> tuple[str, int | None, dict[str, Any]]:
    """``name(params)@cut``, the parameters before or after the cut-off."""
    match = _NOTATION.fullmatch(text)
    if match is None:
        raise UsageError(f"cannot read measure {text!r}", "for example nDCG@10 or P(rel=2)@5")
    params = _arguments(text, ",".join(p for p in (match["before"], match["after"]) if p))
    name, cut = match["name"], match["cut"]
    if cut is None:
        return name, None, params
    if _NAMES.get(name.lower()) == "IPrec":
        try:
            return name, None, params | {"recall": float(cut)}
        except ValueError:
            raise UsageError(f"measure {text!r}: invalid recall level {cut!r}") from None
    try:
        return name, int(cut), params
    except ValueError:
        raise UsageError(
            f"measure {text!r}: invalid cut-off {cut!r}", "a cut-off is a whole number, 1 or more"
        ) from None


def _arguments(text: str, inside: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in re.findall(r"(?:\{[^}]*\}|\([^)]*\)|\[[^\]]*\]|[^,{(\[])+", inside):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not name:
            continue
        if not equals:
            found[name] = True
            continue
        try:
            found[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            if not re.fullmatch(r"[\w.\-]+", value):
                raise UsageError(f"measure {text!r}: cannot read {part.strip()!r}") from None
            found[name] = value
    return found
