"""What a measure is: its formula as people read it, and a measure as somebody asks for it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class Definition:
    """One formula, as `ragcore explain` tells it.

    Attributes
    ----------
    name, aliases : the house's name; other names for the same formula.
    layer : ranked, retrieval, context, generation, citation, ...
    formula, na, needs, source, question, limit : prose for people.
    cutoff : "none", "optional" or "needed".
    params : parameters it takes, with their defaults.
    aggregate : how cases or traces become one number: a form of `ragcore.aggregates`.
    bounds : which bounds it has over ties and holes.
    zero : whether a case without relevant documents may count as 0 (`--no-relevant zero`).
    pooled : whether its numerators and denominators may be added up over cases: `micro(...)`.
    better : "more" or "less", whichever is better; "neither" where it depends, and no plan may be
        decided by it. Without "more" it has no ceiling.
    """

    name: str
    layer: str
    formula: str
    na: str
    needs: tuple[str, ...]
    source: str
    question: str
    limit: str = ""
    aliases: tuple[str, ...] = ()
    cutoff: str = "optional"
    params: dict[str, Any] = field(default_factory=dict)
    aggregate: str = "mean"
    bounds: str = ""
    zero: bool = True
    pooled: bool = False

    @property
    def relations(self) -> tuple[str, ...]:
        """Relations whose verdicts it cannot do without: `needs` tells of alternatives by "or"."""
        judged = [
            need.split(" ", 1)[1] for need in self.needs
            if need.startswith("verdicts ")
        ]  # fmt: skip
        if any(" or " in need or need.startswith("or ") for need in (*judged, *self.needs)):
            return ()
        return tuple(name for need in judged for name in need.split(", "))

    better: str = "more"


@dataclass(frozen=True)
class Measure:
    """A measure as asked for.

    Attributes
    ----------
    text : as it was written, and as it is printed.
    definition : its formula.
    k : ranks counted, 0 = all.
    rel : least relevant grade.
    params : the rest, defaults filled in.
    aggregate : as the definition's, unless the name says otherwise: geometric (gm_map), or micro
        (`micro(P@5)`: sum of numerators over sum of denominators).
    """

    text: str
    definition: Definition
    k: int
    rel: int
    params: dict[str, Any]
    aggregate: str

    @property
    def layered(self) -> bool:
        """Whether it reads columns of the trace, rather than the hits of a ranking."""
        return self.definition.layer != "ranked" and self.definition.name != "retrieval.coverage"


def directed(
    definitions: tuple[Definition, ...], less: tuple[str, ...] = (), neither: tuple[str, ...] = ()
) -> tuple[Definition, ...]:
    """The same definitions, with `better` for those of which less is, or neither.

    Raises
    ------
    ValueError
        If there is no definition of such a name.
    """
    given = {**dict.fromkeys(less, "less"), **dict.fromkeys(neither, "neither")}
    if unknown := given.keys() - {one.name for one in definitions}:
        raise ValueError(f"no definition of {', '.join(sorted(unknown))}")
    return tuple(replace(one, better=given.get(one.name, one.better)) for one in definitions)
