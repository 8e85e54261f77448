"""The tables of docs/experiments.md: the sweep of the in-domain suite, and what it says.

python -m bench.sweeps
python -m bench.sweeps --update docs/experiments.md
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import ragcore
from ragcore.report import sweep as pages

from .peers.report import publish, table

SWEEP = Path(__file__).resolve().parents[1] / "data" / "in_domain" / "sweep.toml"
SHOWN = ("R@5", "nDCG@10", "context.coverage")


def found(state: Path) -> ragcore.SweepResult:
    """The sweep, run; what is done lies in `state`."""
    return ragcore.sweep(SWEEP, state=state)


def rows(result: ragcore.SweepResult) -> list[str]:
    """Every row: its change, what that did, what it costs, the verdict. No times: see `costs`."""
    head = ["experiment", "change", *SHOWN, "context", "index MB", "verdict"]
    body = []
    for row in result.rows:
        if row["state"] != "evaluated":
            body.append([row["experiment"], row["name"], *["-"] * 5, f"*{_why(row)}*"])
            continue
        cells = {c["measure"]: c for c in row["cells"] if c["slice"] == pages.WHOLE}
        against = "" if row["anchor"] == "production" else f", against {row['anchor']}"
        body.append([
            row["experiment"], "; ".join(row["changes"]) + against,
            *(pages.interval(cells.get(name)) for name in SHOWN),
            f"{row['context_tokens']:.0f}", f"{row['index_bytes'] / 1e6:.2f}", row["verdict"],
        ])  # fmt: skip
    return table(head, body, True)


def _why(row: dict) -> str:
    return row["reason"] if row["state"] == "unchanged" else f"not evaluated: {row['reason']}"


def words(result: ragcore.SweepResult) -> list[str]:
    """The rows in words."""
    evaluated = [row["name"] for row in result.rows if row["state"] != "unchanged"]
    said = pages.sentences(result)
    return [f"- {one}" for one in said if not one.endswith("nothing differs")] if evaluated else []


def curve(result: ragcore.SweepResult) -> list[str]:
    """The curve of the threshold over all cases."""
    head, body = pages.curve_table(result, whole=True)
    return table(head, body, True)


def costs(result: ragcore.SweepResult) -> list[str]:
    """p50 and p95 of the rungs of the ladder, in milliseconds, as timed at their depth."""
    ladder = [row for row in result.rows if row["experiment"] == "ladder"]
    shown = [
        (row["name"], result.standing(row)) for row in ladder if row["state"] != "not evaluated"
    ]
    body = [
        [name, f"{row['p50_us'] / 1e3:.3f}", f"{row['p95_us'] / 1e3:.3f}", f"{row['depth']}"]
        for name, row in shown
    ]
    return table(["rung", "p50 ms", "p95 ms", "at depth"], body, True)


BLOCKS = {"rows": rows, "words": words, "curve": curve}


def main(arguments: list[str] | None = None) -> None:
    """Run the sweep, print its tables, and put them into the page if one is named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", type=Path, help="page whose tables are replaced")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as state:
        result = found(Path(state))
        for key, block in {**BLOCKS, "costs": costs}.items():
            publish(key, block(result), options.update)


if __name__ == "__main__":
    main()
