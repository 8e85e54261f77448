"""A diagnosis for people: where cases fail, what that rests on, and what it does not say."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ragcore.report.table import aligned, markdown, plain

NAMED = 6  # cases named in a list
SHOWN = 60  # cases shown with their layers; machine formats have every trace
LIMITS = (
    "A first failing layer is where to look first; the layers after it may fail too.",
    "Only what replays confirm is attributed; uncertain and hypothesis are not proofs.",
    "Supported by the context is not true: authority and currency of sources are not judged here.",
    "This is evidence, not a decision: nothing was released, withheld or repaired.",
)
"""What no number here settles."""


def page(found: Any, form: str) -> bytes:
    """A whole diagnosis.

    Parameters
    ----------
    found : a `Diagnosis`.
    form : table or md.
    """
    parts = (
        _counts, _divergences, _cases, _matrix, _joint, _contracts, _confusion, _hard, _isolation,
        _crossed, _operations, _certificates, _notes,
    )  # fmt: skip
    blocks = [block for part in parts for block in part(found)]
    lines: list[str] = []
    for title, head, body in blocks:
        lines += ["", f"## {title}" if form == "md" else title]
        lines += [""] if form == "md" else []
        if head:
            lines += markdown(head, body) if form == "md" else aligned(head, body)
        else:
            lines += [f"- {line[0]}" if form == "md" else f"  {line[0]}" for line in body]
    return "".join(f"{line.rstrip()}\n" for line in lines[1:]).encode("utf-8", "backslashreplace")


Block = tuple[str, list[str], list[list[str]]]


def _some(names: Iterable[str], most: int = NAMED) -> str:
    listed = [plain(name) for name in names]
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def _counts(found: Any) -> list[Block]:
    rows = [
        (run.name, name, own)
        for run in found.observed for name, own in found.counts(run.name).items()
    ]  # fmt: skip
    usual = {"passed", "retrieval", "context", "generation", "citation"}
    labels = [
        label for label in (rows[0][2] if rows else ())
        if label in usual or any(own[label] for _, _, own in rows)
    ]  # fmt: skip
    body = [
        [plain(run), name if name == "all" else f"lang={plain(name)}",
         *(str(own[label]) for label in labels), str(sum(own.values()))]
        for run, name, own in rows
    ]  # fmt: skip
    title = "First failing layer, cases"
    return [(title, ["run", "slice", *labels, "cases"], body)]


def _divergences(found: Any) -> list[Block]:
    body = [
        [f"{plain(run.name)} {plain(case)}: "
         + ", ".join(f"{plain(str(lang))} {word}" for lang, word in own.items())]
        for run in found.observed for case, own in found.divergences(run.name).items()
    ]  # fmt: skip
    several = any(len(found.counts(run.name)) > 2 for run in found.observed)
    if not body and not several:
        return []
    none = [["none: all languages of a case fail, or pass, alike"]]
    return [("Languages or repeats that do not fail in one layer", [], body[:SHOWN] or none)]


def _cases(found: Any) -> list[Block]:
    """Cases with anything to tell, those that read the same in all languages and repeats once."""
    told: dict[tuple[str, ...], dict[str, None]] = {}
    for one in found.traces:
        quiet = one.attribution.status == "passed" and not set("FG?") & set(one.layers)
        if quiet:
            continue
        replays = one.interventions
        shown = ", ".join(
            f"{name} {said}" for name, said in
            (("oracle", replays.oracle), ("frozen", replays.frozen), ("output", replays.output))
            if said
        )  # fmt: skip
        key = (
            one.run, one.case, one.first, one.layers, one.served, shown, str(one.attribution),
            one.fault or "",
        )  # fmt: skip
        told.setdefault(key, {})[one.lang or ""] = None
    if not told:
        return []
    faults = any(key[-1] for key in told)
    head = ["run", "case", "lang", "first", "C Q R K X G T E", "served", "replays", "attribution"]
    body = []
    for key, langs in list(told.items())[:SHOWN]:
        line = [plain(key[0]), plain(key[1]), plain(" ".join(langs)), *key[2:7]]
        body.append(line + [plain(key[7])] * faults)
    more = f"; {len(told) - SHOWN} more in -f jsonl" if len(told) > SHOWN else ""
    title = (
        "Cases that fail, or that pass with a layer that does not (corpus, query, retrieval, "
        f"ranking, context, generation, citation, evaluation){more}"
    )
    return [(title, head + ["fault"] * faults, body)]


def _matrix(found: Any) -> list[Block]:
    tally: dict[tuple[str, str], list[Any]] = {}
    for one in found.traces:
        own = tally.setdefault((one.run, one.code), [0, {}])
        own[0] += 1
        own[1][one.case] = None
    body = [
        [plain(run), code, str(n), str(len(cases)), _some(cases)]
        for (run, code), (n, cases) in sorted(tally.items())
    ]
    return [("Joint matrix", ["run", "interpretation", "traces", "cases", "which"], body)]


def _joint(found: Any) -> list[Block]:
    body = [
        [plain(run), one.name, f"{one.count}/{one.of}", f"{len(one.cases)}/{one.n_cases}",
         _some(one.cases)]
        for run, counts in found.joint_counts.items() for one in counts if one.of
    ]  # fmt: skip
    return [("Joint counts", ["run", "what", "traces", "cases", "which"], body)] if body else []


def _contracts(found: Any) -> list[Block]:
    body = [
        [plain(run), *one.states, str(one.traces), str(len(one.cases)), _some(one.cases)]
        for run, tallies in found.contracts.items() for one in tallies
    ]  # fmt: skip
    head = ["run", "delivery", "shape", "support", "traces", "cases", "which"]
    return [("Contracts, each on its own", head, body)] if body else []


def _confusion(found: Any) -> list[Block]:
    rows = [(run, row) for run, one in found.confusion.items() for row in one.rows() if row["n"]]
    ended = list(dict.fromkeys(row["found"] for _, row in rows))
    lines: dict[tuple[str, str], dict[str, int]] = {}
    for run, row in rows:
        lines.setdefault((run, row["expected"]), {})[row["found"]] = row["n"]
    body = [
        [plain(run), expected, *(str(own.get(word, 0)) for word in ended)]
        for (run, expected), own in lines.items()
    ]
    head = ["run", "expected", *ended]
    return [("Expected state against final state, traces", head, body)] if body else []


def _hard(found: Any) -> list[Block]:
    body = []
    for run, gates in found.hard.items():
        for gate in gates:
            verdict = "-" if gate.why else "VIOLATED" if gate.violations else "holds"
            body.append([plain(run), f"hard.{gate.name}", verdict, plain(gate.sentence())])
    return [("Hard gates, on every single trace", ["run", "gate", "verdict", "what"], body)]


def _number(value: float | None) -> str:
    return "na" if value is None else f"{value + 0.0:.4f}"


def _paired(found: Any) -> list[str]:
    interval = "" if found.low is None else f"[{found.low + 0.0:.4f}, {found.high + 0.0:.4f}]"
    p = "" if found.p_value is None else f"{found.p_value:.4f}"
    return [_number(found.delta), str(found.n), interval, p]


def _isolation(found: Any) -> list[Block]:
    four = found.isolation
    if four is None:
        return []
    told = [[name, *_paired(four.paired(name, found.level))] for name in four.differences]
    head = ["difference", "mean", "n", f"{100 * found.level:.10g}% exact", "p"]
    runs = ", ".join(f"{plain(c)}: {plain(run)}" for c, run in four.runs.items())
    classes = []
    for name, n in four.counts().items():
        if n or name in four.readings:
            which = _some(case for case, own in four.classes.items() if own == name)
            classes.append([name, str(n), four.readings.get(name, ""), which])
    cases = [
        [plain(case), *(_number(v) for v in values),
         *(_number(v) for v in four.deltas(case).values()), four.classes[case]]
        for case, values in list(four.values.items())[:SHOWN]
    ]  # fmt: skip
    return [
        (f"Isolation of {plain(found.outcome)} ({runs})", head, told),
        ("Isolation, classes", ["class", "cases", "reading", "which"], classes),
        ("Isolation, case by case", ["case", *four.short, *four.differences, "class"], cases),
    ]


def _crossed(found: Any) -> list[Block]:
    crossed = found.crossed
    if crossed is None:
        return []
    head = ["", "mean", "n", f"{100 * found.level:.10g}% exact", "p"]
    told = [["interaction", *_paired(crossed.paired)]]
    masked = f"{len(crossed.masked)} of {crossed.compared} cases"
    return [
        ("Interaction of generator and retriever", head, told),
        (
            "A stronger generator masks weaker retrieval",
            [],
            [[f"{masked}: {_some(crossed.masked) or 'none'}"]],
        ),
    ]


def _operations(found: Any) -> list[Block]:
    out: list[Block] = []
    body = [
        [plain(run), plain(one.name), f"{one.share:.4f}", f"{one.p95_us / 1000:.3f}",
         str(one.traces)]
        for run, stages in found.stages.items() for one in stages
    ]  # fmt: skip
    if body:
        out.append(("Time by stage", ["run", "stage", "share", "p95 ms", "traces"], body))
    odd = []
    for run, traces in found.odd.items():
        for one in traces[:SHOWN]:
            place = " ".join(str(x) for x in (one.case, one.lang, one.repeat) if x is not None)
            odd.append([f"{plain(run)} {plain(place)}: {plain(one.what)}"])
    if odd:
        out.append(("Traces served in another way than others", [], odd))
    return out


def _certificates(found: Any) -> list[Block]:
    body = [[f"{plain(run)}: {plain(one.sentence())}"] for run, one in found.certificates.items()]
    return [("What was changed", [], body)] if body else []


def _notes(found: Any) -> list[Block]:
    body = [[plain(note)] for note in dict.fromkeys(found.notes)]
    body += [[line] for line in LIMITS]
    return [("What this does not say", [], body)]
