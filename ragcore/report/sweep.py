"""A sweep for people: quality beside cost, differences, slices, the result in words."""

from __future__ import annotations

from typing import Any

from ragcore.report.table import aligned, decimal, markdown, plain

FEW = 10
TELLING = 0.1
"""Share by which context tokens must differ for a sentence to say so."""
WHOLE = "all"


def page(found: Any, form: str) -> bytes:
    """The whole report.

    Parameters
    ----------
    found : a `SweepResult`.
    form : table or md.
    """
    lines = [plain(line) for line in opening(found)]
    for title, head, body in (
        ("quality and cost", *_dashboard(found)), ("differences", *_differences(found)),
        ("by type", *_by_type(found)), ("threshold", *curve_table(found, whole=True)),
        ("threshold: recall", *_along(found, "recall")),
        ("threshold: no result where there is an answer", *_along(found, "no_result")),
        ("threshold: any result where there is none", *_along(found, "any_result")),
    ):  # fmt: skip
        if body:
            lines += ["", *_titled(title, form), *_laid_out(head, body, form)]
    lines += ["", *_titled("in words", form), *(plain(one) for one in sentences(found))]
    return "".join(f"{line.rstrip()}\n" for line in lines).encode("utf-8", "backslashreplace")


def curve_page(found: Any, form: str) -> bytes:
    """The curve of the threshold alone."""
    head, body = curve_table(found)
    lines = _laid_out(head, body, form) if body else []
    return "".join(f"{line.rstrip()}\n" for line in lines).encode("utf-8", "backslashreplace")


def _titled(title: str, form: str) -> list[str]:
    return [f"## {title}", ""] if form == "md" else [title]


def _laid_out(head: list[str], body: list[list[str]], form: str) -> list[str]:
    cells = [[plain(cell) for cell in line] for line in body]
    if form == "md":
        return markdown(head, cells)
    return aligned(head, cells)


# --- the opening


def opening(found: Any) -> list[str]:
    """What is swept, and what it rests on."""
    about = found.about
    kind = about["kind"] or "kind not stated"
    out = [
        f"sweep {about['name']}: suite {about['suite']} ({kind}), split {about['split']}, "
        f"{_cases(about)}" + (f", {about['pool']} chunks" if about["pool"] else "")
    ]
    out += [f"cannot show: {line}" for line in about["cannot_show"]]
    source = f"the recorded run {about['run']}" if about["run"] else "one wide run, searched here"
    out.append(f"baseline: production; every row replays {source}")
    out.append(f"production: {_settings(about['production'])}")
    label = found.baseline["label"]
    if label.startswith("prefix"):
        out.append(f"production is replayed, too: {label}; a search at its candidate_k may differ")
    out += [f"production: {line}" for line in found.baseline["notes"]]
    out += _plans(found)
    cells = [cell for cell in found.baseline["cells"] if cell["slice"] == WHOLE]
    room = [f"{cell['measure']} {cell['saturation']}" for cell in cells if cell["saturation"]]
    if room:
        out.append(f"production leaves: {'; '.join(room)}")
    out += [f"note: {line}" for line in about["notes"]]
    if about["types"]:
        counted = [
            f"{name} {n}{' (descriptive)' if n < FEW else ''}" for name, n in about["types"].items()
        ]
        out.append(f"types: {', '.join(counted)}")
    return out


def _cases(about: dict[str, Any]) -> str:
    """How many cases there are, and how many of them rows are of."""
    if about["n_run"] == about["n_cases"]:
        return f"{about['n_cases']} cases"
    return f"{about['n_run']} of {about['n_cases']} cases"


def _plans(found: Any) -> list[str]:
    """The plan, and those of experiments that have another one."""
    used = dict.fromkeys(row["experiment"] for row in found.rows)
    said: dict[str, list[str]] = {}
    for name in used:
        one = found.about["plans"][name]
        guards = ", ".join(f"{key} by {margin:g}" for key, margin in one["guards"].items())
        tokens = "none" if one["tokens_ratio"] is None else f"{one['tokens_ratio']:g}"
        text = (
            f"primary {', '.join(one['primary']) or 'none'}; guards {guards or 'none'}; "
            f"p95 ratio {one['p95_ratio']:g}; tokens ratio {tokens}"
        )
        said.setdefault(text, []).append(name)
    common = max(said, key=lambda text: len(said[text]), default="")
    return [
        f"plan: {text}" if text == common else f"plan of {', '.join(names)}: {text}"
        for text, names in sorted(said.items(), key=lambda each: each[0] != common)
    ]


def _settings(manifest: dict[str, Any], prefix: str = "") -> str:
    parts = []
    for key, value in manifest.items():
        if isinstance(value, dict) and value:
            parts.append(_settings(value, f"{prefix}{key}."))
        elif value not in (None, "", [], {}):
            shown = ", ".join(map(str, value)) if isinstance(value, list) else value
            shown = f"{shown:g}" if isinstance(shown, float) else shown
            parts.append(f"{prefix}{key} {str(shown).lower() if shown in (True, False) else shown}")
    return "; ".join(part for part in parts if part)


# --- tables


def _measures(found: Any) -> list[str]:
    """Measures of the tables, in their order; tokens have a column of their own."""
    return [name for name in found.about["measures"] if name != "context.tokens"]


def _of(row: dict[str, Any], slice: str = WHOLE) -> dict[str, dict[str, Any]]:
    return {cell["measure"]: cell for cell in row["cells"] if cell["slice"] == slice}


def _dashboard(found: Any) -> tuple[list[str], list[list[str]]]:
    names = _measures(found)
    head = ["experiment", "row", *names, "p50 ms", "p95 ms", "timed", "index bytes",
            "context tokens", "verdict"]  # fmt: skip
    body = [["", "production", *_values(found.baseline, names), *_costs(found.baseline), ""]]
    for row in found.rows:
        if row["state"] == "not evaluated":
            gap = ["-"] * (len(names) + 5)
            body.append([row["experiment"], row["name"], *gap, f"not evaluated: {row['reason']}"])
            continue
        shown = found.standing(row)
        said = f"({row['reason']})" if row["state"] == "unchanged" else row["verdict"] or "none"
        if row.get("conflicts", {}).get(found.deciding(row)):
            said += "; slices disagree"
        ratio = _tokens_ratio(row)
        if row.get("verdict") == "adopt" and ratio is not None and ratio > 1 + TELLING:
            said += f"; {ratio:.2f} times the context tokens"
        body.append([row["experiment"], row["name"], *_values(shown, names), *_costs(shown), said])
    return head, body


def _values(row: dict[str, Any], names: list[str]) -> list[str]:
    cells = _of(row)
    out = []
    for name in names:
        cell = cells.get(name)
        text = decimal(cell["mean"]) if cell is not None else "-"
        out.append(text + _gone(cell))
    return out


def _costs(row: dict[str, Any]) -> list[str]:
    p50, p95 = row.get("p50_us"), row.get("p95_us")
    tokens, size = row.get("context_tokens"), row.get("index_bytes")
    return [
        "missing" if p50 is None else f"{p50 / 1000:.3f}",
        "missing" if p95 is None else f"{p95 / 1000:.3f}",
        row.get("timed") or "",
        "missing" if size is None else f"{size:,}",
        "missing" if tokens is None else f"{tokens:.1f}{_gone(_of(row).get('context.tokens'))}",
    ]


def _gone(cell: dict[str, Any] | None) -> str:
    """How many cases a mean leaves out, as something was not recorded."""
    return f" ({cell['n_missing']} missing)" if cell is not None and cell["n_missing"] else ""


def _tokens_ratio(row: dict[str, Any]) -> float | None:
    """How many times as many tokens a row shows, over the same cases; None where not known."""
    cell = _of(row).get("context.tokens")
    if cell is None or not cell.get("before") or cell.get("after") is None:
        return None
    return cell["after"] / cell["before"]


def _differences(found: Any) -> tuple[list[str], list[list[str]]]:
    rows = [row for row in found.rows if row["state"] == "evaluated"]
    names = _measures(found)
    anchors = len({row["anchor"] for row in rows}) > 1
    head = ["row", *(["against"] if anchors else []), "change", *names, "p Holm", "replay"]
    body = []
    for row in rows:
        cells, primary = _of(row), found.deciding(row)
        change = "; ".join(row["changes"])
        if not row["single_change"]:
            change += " (not a single change)"
        p = cells[primary].get("p_adjusted") if primary in cells else None
        body.append(
            [row["name"], *([row["anchor"]] if anchors else []), change,
             *(interval(cells.get(name)) for name in names),
             "" if p is None else f"{p:.4f}" if p >= 1e-3 else f"{p:.1e}", row["label"]]
        )  # fmt: skip
    return head, body


def interval(cell: dict[str, Any] | None) -> str:
    """A difference with its interval."""
    if cell is None or cell["delta"] is None:
        return "-"
    text = f"{cell['delta'] + 0.0:+.4f}"
    if cell["delta_low"] is None:
        return text
    return f"{text} [{cell['delta_low'] + 0.0:.4f}, {cell['delta_high'] + 0.0:.4f}]"


def _by_type(found: Any) -> tuple[list[str], list[list[str]]]:
    """Differences of the deciding measure on every slice; a star where a slice is tiny."""
    rows = [row for row in found.rows if row["state"] == "evaluated"]
    slices = list(
        dict.fromkeys(c["slice"] for row in rows for c in row["cells"] if c["slice"] != WHOLE)
    )
    if not slices:
        return [], []
    counts = {
        c["slice"]: c["n_cases"] for c in found.baseline["cells"] if c["slice"] != WHOLE
    }  # fmt: skip
    head = ["row", "measure", WHOLE]
    head += [f"{name} (n={counts.get(name, 0)}{tiny(counts.get(name, 0))})" for name in slices]
    body = []
    for row in rows:
        name = found.deciding(row)
        line = [row["name"], name]
        for part in (WHOLE, *slices):
            cell = _of(row, part).get(name)
            line.append("-" if cell is None or cell["delta"] is None else f"{cell['delta']:+.4f}")
        body.append(line)
    return head, body


def tiny(n: int) -> str:
    """A mark for slices too small to say more than what was seen."""
    return ", descriptive" if n < FEW else ""


def curve_table(found: Any, whole: bool = False) -> tuple[list[str], list[list[str]]]:
    """The curve of the threshold, overall and by type; with `whole` only overall."""
    head = ["channel", "threshold", "split", "slice", "recall", "precision", "F1", "no result",
            "any result, unanswerable", "context tokens", ""]  # fmt: skip
    body = []
    for row in found.curve:
        if whole and row["slice"] != WHOLE:
            continue
        t = _threshold(row)
        body.append(
            [row["channel"], t, row["split"],
             f"{row['slice']} (n={row['n_cases']}{tiny(row['n_cases'])})",
             _over(row, "recall", "n_recall"), _over(row, "precision", "n_precision"),
             _over(row, "f1", "n_f1"), _over(row, "no_result", "n_answerable"),
             _over(row, "any_result", "n_unanswerable"),
             "missing" if row["context_tokens"] is None else f"{row['context_tokens']:.1f}",
             "chosen" if row["chosen"] and row["slice"] == WHOLE else ""]
        )  # fmt: skip
    return head, body


def _threshold(row: dict[str, Any]) -> str:
    return "off" if row["threshold"] is None else f"{row['threshold']:g}"


def _along(found: Any, name: str) -> tuple[list[str], list[list[str]]]:
    """One column of the curve: slices down, thresholds across; the right one differs by slice."""
    across = list(dict.fromkeys(_threshold(row) for row in found.curve))
    lines: dict[str, dict[str, str]] = {}
    for row in found.curve:
        if row["slice"] == WHOLE:
            continue
        slice_name = f"{row['slice']} (n={row['n_cases']}{tiny(row['n_cases'])})"
        shown = "na" if row[name] is None else f"{row[name]:.4f}"
        lines.setdefault(slice_name, {})[_threshold(row)] = shown
    kept = {k: cells for k, cells in lines.items() if set(cells.values()) != {"na"}}
    body = [[k, *(cells.get(t, "") for t in across)] for k, cells in kept.items()]
    return ["slice", *across], body


def _over(row: dict[str, Any], name: str, count: str) -> str:
    """A mean and over how many cases it is; na without any."""
    return "na" if row[name] is None else f"{row[name]:.4f} /{row[count]}"


# --- words


def sentences(found: Any) -> list[str]:
    """One sentence a row, and what makes a row no evidence."""
    out = [_sentence(found, row) for row in found.rows]
    if found.curve:
        best = next((r for r in found.curve if r["chosen"] and r["slice"] == WHOLE), None)
        if best is not None:
            t = _threshold(best)
            name = found.about["choose"]
            n, whole = best[f"n_{name}"], best["n_recall"]
            over = f" over {n} cases, of {whole} that have an answer" if n < whole else ""
            out.append(
                f"threshold on {best['channel']}: {t} has the best {name} on the split "
                f"{best['split']} ({best[name]:.4f}{over}); its row is of the split "
                f"{found.about['split']}"
            )
    return out


def _sentence(found: Any, row: dict[str, Any]) -> str:
    name = row["name"]
    if row["state"] == "not evaluated":
        return f"{name}: not evaluated: {row['reason']}"
    if row["state"] == "unchanged":
        return f"{name}: {row['reason']}, nothing differs"
    against = "" if row["anchor"] == "production" else f" (against {row['anchor']})"
    change = "; ".join(row["changes"]).replace(": ", " ")
    measure = found.deciding(row)
    cell = _of(row).get(measure)
    said = f"{change}{against}: {measure} {interval(cell)}"
    if cell is not None and cell["n_matched"]:
        said += f" over {cell['n_matched']} case{'s' if cell['n_matched'] > 1 else ''}"
    if cell is not None and cell["delta_low"] is not None:
        zero = cell["delta_low"] <= 0.0 <= cell["delta_high"]
        said += ", interval includes 0" if zero else ", interval excludes 0"
    ratio = _tokens_ratio(row)
    if ratio is not None and abs(ratio - 1) > TELLING:
        tokens = _of(row)["context.tokens"]
        said += (
            f", context tokens {tokens['before']:.1f} -> {tokens['after']:.1f} ({ratio:.2f} times"
            + (f", over {tokens['n_matched']} cases)" if tokens["n_missing"] else ")")
        )
    said += f": {row['verdict'] or 'no verdict'}"
    extra = []
    if row["reasons"] and not row["reasons"][0].startswith((f"{measure} ", "tainted")):
        extra.append(row["reasons"][0])
    if row["conflicts"].get(measure):
        extra.append(row["conflicts"][measure])
    if row["n_missing"]:
        extra.append(f"{row['n_missing']} of {row['n_questions']} traces missing")
    if row["label"].startswith("prefix"):
        extra.append(row["label"])
    if not row["single_change"]:
        extra.append("not a single change")
    if row["experiment"] == "chunking":
        extra.append("a rank holds more text")
    if row["verdict"] in ("adopt", "product decision"):
        extra += [
            why for why in row["reasons"][1:] if why.startswith(("context tokens", "p95 not"))
        ]
    if row["tainted"]:
        extra.append(row["reasons"][0])
    extra += row["notes"]
    return "; ".join([said, *extra])
