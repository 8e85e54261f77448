"""What a measure is, in words."""

from __future__ import annotations

from ragcore.measures.definitions import Definition, Measure
from ragcore.measures.forms import words_of


def explain_measure(measure: Measure) -> str:
    """The page of one measure, as asked for."""
    one = measure.definition
    asked = [f"k = {measure.k}" if measure.k else "all ranks"] if one.cutoff != "none" else []
    asked += [f"rel = {measure.rel}"] if one.layer == "ranked" else []
    asked += [f"{name} = {value}" for name, value in measure.params.items() if value]
    lines = [
        ("measure", measure.text),
        ("question", one.question),
        ("formula", f"{one.name} = {one.formula}"),
        ("asked for", "; ".join(asked) or "as it is"),
        ("summary", words_of(measure.aggregate)),
        ("better", one.better if one.better != "more" else ""),
        ("na", one.na),
        ("bounds", one.bounds),
        ("needs", ", ".join(one.needs)),
        ("source", one.source),
        ("limit", one.limit),
        ("other names", ", ".join(one.aliases)),
    ]
    return "\n".join(f"{name:<12} {text}" for name, text in lines if text)


def list_measures(definitions: list[Definition]) -> str:
    """All measures, one line each."""
    width = max(len(one.name) for one in definitions)
    return "\n".join(f"{one.name:<{width}}  {one.formula}" for one in definitions)
