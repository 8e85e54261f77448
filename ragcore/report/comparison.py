"""Comparisons and gates for people: tables, verdicts in words, the cases behind a difference."""

from __future__ import annotations

from typing import Any

from ragcore.report.table import aligned, count, markdown, plain

NAMED = 5  # cases named on either side
SHOWN = 8  # measures whose cases are named


def page(found: Any, form: str, brief: bool = False) -> bytes:
    """A whole comparison: what changed, the differences, the cases behind them, the verdict.

    Parameters
    ----------
    found : a `Comparison`.
    form : table or md.
    brief : leave out the cases behind the differences.
    """
    rows = found.rows()
    head, body = _table(rows, found.settings.level)
    lines = [line for one in found.contrasts for line in _opening(one, len(found.contrasts) > 1)]
    lines += ["", *(markdown(head, body) if form == "md" else aligned(head, body))]
    if not brief:
        lines += _changes(found)
    lines += ["", *verdict_lines(found)]
    return "".join(f"{line.rstrip()}\n" for line in lines).encode("utf-8", "backslashreplace")


def _opening(one: Any, several: bool) -> list[str]:
    said = [f"baseline {plain(one.before.name)}, candidate {plain(one.after.name)}"]
    prefix = f"{plain(one.after.name)}: " if several else ""
    return [*said, f"{prefix}{plain(one.manifest.sentence())}"]


def _table(rows: list[dict[str, Any]], level: float) -> tuple[list[str], list[list[str]]]:
    compared = [row for row in rows if row.get("n_matched") is not None]
    pairs = {(row["baseline"], row["run"]) for row in compared}
    several = len(pairs) > 1
    baselines = len({baseline for baseline, _ in pairs}) > 1
    sliced = any(row["slice"] != "all" for row in compared)
    holm = any(row["p_adjusted"] is not None for row in compared)
    noted = any(row["remarks"] for row in compared)
    head = ["baseline"] * baselines + ["candidate"] * several + ["slice"] * sliced
    head += ["measure", "before", "after", "delta", f"{100 * level:.10g}% exact", "p"]
    head += ["p Holm"] * holm + ["won/lost/tied", "n", "baseline leaves"] + ["note"] * noted
    body = []
    for row in compared:
        line = [plain(row["baseline"])] * baselines + [plain(row["run"])] * several
        line += [plain(row["slice"])] * sliced + [plain(row["measure"])]
        line += [_number(row["before"]), _number(row["after"]), _signed(row["delta"])]
        line += [_interval(row), _p(row["p_value"], row["p_method"])]
        line += [_p(row["p_adjusted"], None)] * holm
        tally = row["wins"], row["losses"], row["ties"]
        whole = row["n_matched"] and not any(tally)  # it compares as a whole, not case by case
        line += ["" if whole else "/".join(map(str, tally)), count(float(row["n_matched"]))]
        line += [row["saturation"] or ""]
        body.append(line + [plain("; ".join(row["remarks"]))] * noted)
    return head, body


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{value + 0.0:+.4f}"


def _interval(row: dict[str, Any]) -> str:
    if row["delta_low"] is None:
        return ""
    text = f"[{row['delta_low'] + 0.0:.4f}, {row['delta_high'] + 0.0:.4f}]"
    method = row["delta_method"] or "exact"
    return text if method == "exact" else f"{text} {method.removeprefix('exact')}"


def _p(value: float | None, method: str | None) -> str:
    """A p-value at four places, smaller ones by their magnitude; never 0."""
    if value is None:
        return ""
    text = f"{value:.4f}" if value >= 0.001 else f"{value:.1e}"
    if method and method.endswith("<"):
        return f"<{text}"
    return text if method in (None, "exact") else f"{text} {method.removeprefix('exact')}"


def _changes(found: Any) -> list[str]:
    """Which cases a candidate won and lost, measure by measure."""
    lines: list[str] = []
    several = len(found.contrasts) > 1
    for i, one in enumerate(found.contrasts):
        cells = [c for c in one.whole().values() if c.paired.wins or c.paired.losses]
        for cell in cells[:SHOWN]:
            won, lost = found.changed(cell.measure.text, i)
            label = f"{plain(one.after.name)} " if several else ""
            layers = found.layers([*won[:NAMED], *lost[:NAMED]], i)
            lines.append(
                f"{label}{plain(cell.measure.text)}: won {_some(won, layers)}; "
                f"lost {_some(lost, layers)}"
            )
        if len(cells) > SHOWN:
            lines.append(f"{len(cells) - SHOWN} more measures moved: --per-case lists every case")
    return ["", *lines] if lines else []


def _some(names: list[str], layers: dict[str, tuple[str, str]]) -> str:
    """Cases, each with the first layer that fails before and after, where that is known."""
    if not names:
        return "none"
    said = {
        name: f" (layer: {before} -> {after})"
        for name, (before, after) in layers.items()
    }  # fmt: skip
    shown = ", ".join(f"{plain(name)}{said.get(name, '')}" for name in names[:NAMED])
    return shown + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")


def verdict_lines(found: Any) -> list[str]:
    """The verdict on every candidate, with its reasons."""
    lines = []
    several = len(found.contrasts) > 1
    for one, verdict in zip(found.contrasts, found.verdicts, strict=True):
        label = f" on {one.after.name} against {one.before.name}" if several else ""
        lines.append(f"verdict{plain(label)}: {verdict.verdict or 'none'}")
        lines += [f"  {plain(reason)}" for reason in verdict.reasons]
    return lines


def gate_table(results: list[Any], form: str = "table") -> str:
    """What became of every gate."""
    several = len({result.run for result in results}) > 1
    sliced = any(result.slice != "all" for result in results)
    head = ["gate", "verdict"] + ["run"] * several + ["slice"] * sliced + ["value", "reason"]
    body = []
    for one in results:
        value = "-" if one.value is None else f"{one.value:.6g}"
        text = f"{one.gate.text} (hard)" if one.gate.hard else one.gate.text
        line = [plain(text), one.status] + [plain(one.run)] * several
        line += [plain(one.slice)] * sliced
        body.append([*line, value, plain(one.reason)])
    if not any(line[-1] for line in body):
        head, body = head[:-1], [line[:-1] for line in body]
    lines = markdown(head, body) if form == "md" else aligned(head, body)
    return "\n".join(line.rstrip() for line in lines)
