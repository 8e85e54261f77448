"""trec_eval 10's published outputs, reproduced line by line to the four decimals it prints.

Once by the plain-Python reference alone, once through the public interface. What is not
reproduced is listed by name, and the lists are asserted to be exact.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

import ragcore
import reference
from ragcore.errors import RagcoreError
from reference_data import Qrels, Run, read_qrels, read_qrels_text, read_run_text, read_runs


class Output(NamedTuple):
    """One published output: the inputs it belongs to, and trec_eval's options in our words."""

    name: str
    run: str
    qrels: str
    topics: str = "common"
    rel: int = 1
    max_depth: int | None = None

    def __str__(self) -> str:
        return f"{self.name}<-{self.qrels}"


OUTPUTS = [
    Output("out.test", "results.test", "qrels.test"),
    Output("out.test", "results.test", "qrels.test.with-comments"),
    Output("out.comment.test", "rag24_run.parquet", "rag24_qrels.parquet"),
    Output("out.test.a", "results.test", "qrels.test"),
    Output("out.test.aq", "results.test", "qrels.test"),
    Output("out.test.aqc", "results.trunc", "qrels.test", topics="judged"),
    Output("out.test.aqcM", "results.trunc", "qrels.test", topics="judged", max_depth=100),
    Output("out.test.aql", "results.test", "qrels.rel_level", rel=2),
    Output("out.test.meas_params", "results.test", "qrels.test"),
]

TEXTS = frozenset({"runid", "relstring", "relstring_20"})
"""Printed by trec_eval as words: no measures."""

NOT_OURS = frozenset({"G", "ndcg_rel", "Rndcg", "rbp_resid"})
"""Experimental gain measures, and a residual whose gain scale comes from memory never set."""

UNDEFINED = {"out.test.aql": frozenset({"rbp"})}
"""Graded judgements: trec_eval scales the gains by a minimum and a maximum it never set."""

PREFERENCES = frozenset(
    [f"prefs_avgjg{part}" for part in ("", "_Rnonrel", "_Rnonrel_ret", "_imp", "_ret")]
    + [f"prefs_num_prefs_{part}" for part in ("ful", "ful_ret", "poss")]
    + [f"prefs_{kind}{part}" for kind in ("pair", "simp") for part in ("", "_imp", "_ret")]
)

JUDGE_GROUPS = frozenset(
    ["map_avgjg"]
    + [f"P_avgjg_{k}" for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)]
    + [f"Rprec_mult_avgjg_{i / 5:.2f}" for i in range(1, 11)]
)

OTHER_FORMATS = {
    "out.test.prefs": PREFERENCES,
    "out.test.qrels_prefs": PREFERENCES,
    "out.test.qrels_jg": JUDGE_GROUPS,
}
"""Outputs over preferences and judgement groups: none of their measures is ours."""


class Line(NamedTuple):
    measure: str
    topic: str
    text: str


def lines_of(path: Path) -> list[Line]:
    return [
        Line(*(field.strip() for field in line.split("\t", 2)))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]


def numbers_of(output: Output, folder: Path) -> list[Line]:
    """The lines of an output that are to be reproduced."""
    skipped = TEXTS | NOT_OURS | UNDEFINED.get(output.name, frozenset())
    return [line for line in lines_of(folder / "raw" / output.name) if line.measure not in skipped]


def path_of(folder: Path, name: str) -> Path:
    return folder / name if name.endswith(".parquet") else folder / "raw" / name


def printed(value: float, like: str) -> str:
    return f"{value:.4f}" if "." in like else f"{value:.0f}"


@pytest.fixture(scope="session")
def golden(shared_data: Path) -> Path:
    return shared_data / "trec_eval_golden"


def inputs_of(output: Output, folder: Path) -> tuple[Run, Qrels]:
    run, qrels = path_of(folder, output.run), path_of(folder, output.qrels)
    if run.suffix == ".parquet":
        (only,) = read_runs(run).values()
        return only, read_qrels(qrels)
    return read_run_text(run), read_qrels_text(qrels)


# --- the reference alone


@pytest.mark.parametrize("output", OUTPUTS, ids=str)
def test_reference__prints_as_trec_eval(output: Output, golden: Path) -> None:
    run, qrels = inputs_of(output, golden)
    topics = [t for t in qrels if output.topics == "judged" or t in run]
    ranked = {t: reference.order(run.get(t, []))[: output.max_depth] for t in topics}
    values: dict[str, dict[str, float | None]] = {}
    for line in numbers_of(output, golden):
        if line.measure not in values:
            values[line.measure] = {
                t: reference.score(line.measure, ranked[t], qrels[t], output.rel) for t in topics
            }
        of_topic = values[line.measure]
        if line.topic == "all":
            value = reference.aggregate(line.measure, of_topic.values())
        else:
            value = of_topic[line.topic]
        assert value is not None, line
        assert printed(value, line.text) == line.text, line


# --- the engine


def scores_of(output: Output, folder: Path, names: list[str]) -> Any:
    return ragcore.score(
        path_of(folder, output.run),
        qrels=path_of(folder, output.qrels),
        measures=names,
        topics=output.topics,
        rel=output.rel,
        max_depth=output.max_depth,
    )


@pytest.mark.parametrize("output", OUTPUTS, ids=str)
def test_score__prints_as_trec_eval(output: Output, golden: Path) -> None:
    lines = numbers_of(output, golden)
    scores = scores_of(output, golden, list(dict.fromkeys(line.measure for line in lines)))
    for line in lines:
        if line.topic == "all":
            value = scores.mean(line.measure)
        else:
            value = scores.value(line.measure, line.topic)
        assert value is not None, line
        assert printed(value, line.text) == line.text, line


@pytest.mark.parametrize("output", OUTPUTS, ids=str)
def test_score__keeps_the_topics_of_trec_eval(output: Output, golden: Path) -> None:
    printed_topics = {line.topic for line in numbers_of(output, golden)} - {"all"}
    table = scores_of(output, golden, ["map"]).table().to_pydict()
    if printed_topics:
        assert set(table["case_id"]) == printed_topics
    (count,) = [x.text for x in lines_of(golden / "raw" / output.name) if x.measure == "num_q"] or [
        str(len(printed_topics))
    ]
    assert len(set(table["case_id"])) == int(count)


# --- what is left out


def knows(name: str) -> bool:
    """Whether the engine has a measure of this name."""
    try:
        ragcore.score({"t": {"d": 1.0}}, qrels={"t": {"d": 1}}, measures=[name])
    except RagcoreError:
        return False
    return True


def test_score__leaves_out_exactly_these(golden: Path) -> None:
    names = {line.measure for output in OUTPUTS for line in lines_of(golden / "raw" / output.name)}
    assert {name for name in names if not knows(name)} == TEXTS | NOT_OURS


@pytest.mark.parametrize("name", sorted(OTHER_FORMATS))
def test_score__has_no_measure_of_other_judgement_formats(name: str, golden: Path) -> None:
    names = {line.measure for line in lines_of(golden / "raw" / name)}
    assert names - {"runid", "num_q"} == OTHER_FORMATS[name]
    assert not {each for each in OTHER_FORMATS[name] if knows(each)}


def test_score__has_no_z_scores(golden: Path) -> None:
    plain = {line.measure for line in lines_of(golden / "raw" / "out.test.aq")}
    scaled = {line.measure for line in lines_of(golden / "raw" / "out.test.aqZ")}
    ours = {name for name in scaled if not name.startswith("Z")}
    assert ours <= plain | {"num_q"}
    assert {name[1:] for name in scaled - ours} <= plain
    assert not {name for name in scaled - ours if knows(name)}


def test_outputs__are_all_accounted_for(golden: Path) -> None:
    published = {path.name for path in (golden / "raw").glob("out.*")}
    used = {output.name for output in OUTPUTS}
    assert published == used | set(OTHER_FORMATS) | {"out.test.aqZ"}
