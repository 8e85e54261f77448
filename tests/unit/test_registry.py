"""Names of measures: notations, aliases, families, globs, and what each refuses."""

import pytest

from ragcore import score
from ragcore.aggregates import form_of
from ragcore.errors import UsageError
from ragcore.explain import explain_measure, list_measures
from ragcore.measures import ranked, registry
from ragcore.measures.forms import words_of
from ragcore.measures.registry import Definition


def one(text, rel=1):
    (measure,) = registry.parse([text], rel)
    return measure


def about(text):
    measure = one(text)
    return measure.definition.name, measure.k, measure.rel


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nDCG@10", ("nDCG", 10, 1)),
        ("ndcg_cut_10", ("nDCG", 10, 1)),
        ("ndcg", ("nDCG", 0, 1)),
        ("NDCG", ("nDCG", 0, 1)),
        ("P@5", ("P", 5, 1)),
        ("P_5", ("P", 5, 1)),
        ("P(rel=2)@5", ("P", 5, 2)),
        ("P@5(rel=2)", ("P", 5, 2)),
        ("Precision@5", ("P", 5, 1)),
        ("map", ("AP", 0, 1)),
        ("MAP@100", ("AP", 100, 1)),
        ("map_cut_100", ("AP", 100, 1)),
        ("recip_rank", ("RR", 0, 1)),
        ("MRR@10", ("RR", 10, 1)),
        ("recall_1000", ("R", 1000, 1)),
        ("R@1000", ("R", 1000, 1)),
        ("relative_P_5", ("R_capped", 5, 1)),
        ("success_1", ("Success", 1, 1)),
        ("hit_rate@3", ("Success", 3, 1)),
        ("Rprec", ("Rprec", 0, 1)),
        ("R-precision", ("Rprec", 0, 1)),
        ("bpref", ("Bpref", 0, 1)),
        ("set_F_2.0", ("SetF", 0, 1)),
        ("iprec_at_recall_0.10", ("IPrec", 0, 1)),
        ("IPrec@0.1", ("IPrec", 0, 1)),
        ("num_rel_ret", ("NumRelRet", 0, 1)),
        ("rbp", ("RBP", 0, 1)),
        (" AP ", ("AP", 0, 1)),
        ("retrieval.coverage", ("retrieval.coverage", 0, 1)),
    ],
)
def test_parse__every_notation(text, expected):
    assert about(text) == expected
    assert one(text).text == text.strip()


def test_parse__parameters():
    assert one("RBP(p=0.5)@10").params["p"] == 0.5
    assert one("rbp").params["p"] == 0.9
    assert one("nDCG(gains={1: 0.3, 2: 9})@5").params["gains"] == {1: 0.3, 2: 9.0}
    assert one("ndcg_1=3,2=9").params["gains"] == {1: 3.0, 2: 9.0}
    assert one("nDCG(judged_only=True)").params["judged_only"] is True
    assert one("nDCG@2(judged_only)").params["judged_only"] is True
    assert one("nDCG(dcg=exp-log2)@5").params["gain"] == "exp"
    assert one("Rprec_mult_0.20").params["multiple"] == 0.2
    assert one("gm_map").aggregate == "geometric"
    assert one("utility_1,-1,0,0").params["weights"] == (1.0, -1.0, 0.0, 0.0)
    assert one("utility(weights=(1, -2, 0, 0))").params["weights"] == (1, -2, 0, 0)
    assert one("11pt_avg_0.0,0.5").params["points"] == (0.0, 0.5)
    assert one("11pt_avg(points=[0, 1], rel=2)").params["points"] == [0, 1]
    assert one("AP", rel=3).rel == 3
    assert one("AP(rel=2)", rel=3).rel == 2
    assert one("AP", rel=-4).rel == 0


def test_parse__families_globs_and_repeats():
    names = [m.text for m in registry.parse(["P", "P_5", "ndcg_cut.3,7"])]
    assert names == [f"P_{k}" for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)] + [
        "ndcg_cut_3", "ndcg_cut_7"
    ]  # fmt: skip
    assert [m.text for m in registry.parse(["retrieval.coverage*"])] == [
        "retrieval.coverage", "retrieval.coverage_document", "retrieval.coverage_block",
        "retrieval.coverage_span",
    ]  # fmt: skip
    assert len(registry.parse(["iprec_at_recall"])) == 11
    assert registry.parse([]) == []


def test_parse__two_names_of_one_formula_both_print():
    scores = score({"q": {"a": 1.0}}, qrels={"q": {"a": 1}}, measures=["MRR@10", "RR@10", "RR@10"])
    assert scores.means() == {"MRR@10": 1.0, "RR@10": 1.0}


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "cannot read measure"),
        ("nDGC@10", r"unknown measure 'nDGC@10'(?s:.*)did you mean ndcg"),
        ("zzz", "ragcore explain lists them"),
        ("P@", "invalid cut-off ''"),
        ("P@0", "invalid cut-off 0"),
        ("P@-1", "invalid cut-off -1"),
        ("P_-5", "invalid cut-off -5"),
        ("P@1.5", "invalid cut-off '1.5'"),
        ("P@ten", "invalid cut-off 'ten'"),
        ("P@99999999999999999999", "invalid cut-off"),
        ("Precision", "needs a cut-off"),
        ("Bpref@5", "takes no cut-off"),
        ("P(rel=x)@5", "rel='x' is not an integer"),
        ("P(rel=1.5)@5", "not an integer"),
        ("P(rel=True)@5", "not an integer"),
        ("P(rel=99999999999999999999)@5", "beyond"),
        ("P(q=1)@5", "no parameter 'q'(?s:.*)it takes rel"),
        ("RBP(p=1)", "not between 0 and 1"),
        ("RBP(p='a')", "not a finite number"),
        ("RBP(p=nan)", "not a finite number"),
        ("RBP(p=True)", "not a finite number"),
        ("ERR(max=1e999)@5", "not a finite number"),
        ("SetF(beta=None)", "number|beta"),
        ("IPrec@nan", "not a finite number"),
        ("IPrec@x", "invalid recall level"),
        ("IPrec", "needs a recall level"),
        ("iprec_at_recall_1.2.3", "cannot read its number"),
        ("set_F_.", "cannot read its number"),
        ("utility_1,-,0,0", "cannot read its number"),
        ("utility(weights=3)", "weights=3"),
        ("utility(weights=(1,2))", "four"),
        ("utility_1,1,1,1", "collection's size"),
        ("11pt_avg(points=3)", "points=3"),
        ("11pt_avg(points=())", r"points=\(\)"),
        ("11pt_avg_,", "cannot read its number"),
        ("nDCG(gains=3)", "gains=3"),
        ("nDCG(gains={'a': 'b'})", "gains="),
        ("nDCG(gains={1: 1e999})", "not a finite number"),
        ("nDCG(gains={100000000: 1})", "at most"),
        ("nDCG(gain=cubic)", "linear or exp"),
        ("nDCG(dcg=ln)", "log2"),
        ("nDCG(__import__('os'))", "cannot read|no parameter"),
        ("nDCG@10@10", "cannot read|invalid"),
        ("nDCG@10)", "cannot read|invalid"),
        ("foo.*", "no measure matches"),
        ("P.x", "invalid cut-off"),
        ("x" * 500, "unknown measure"),
        ("P_" + "9" * 5000, "cannot read its number|invalid cut-off"),
    ],
)  # fmt: skip
def test_parse__refuses(text, match):
    with pytest.raises(UsageError, match=match):
        score({"q": {"a": 1.0}}, qrels={"q": {"a": 1}}, measures=[text])


def test_names__are_unique_and_each_is_explained():
    names = [n for d in registry.definitions() for n in (d.name, *d.aliases)]
    assert len({n.lower() for n in names}) == len(names)
    listed = list_measures(registry.definitions())
    for definition in registry.definitions():
        assert f"\n{definition.name} " in f"\n{listed}"
        for name in (definition.name, *definition.aliases):
            cut = "@10" if definition.cutoff == "needed" else ""
            cut = "@0.5" if definition.name == "IPrec" else cut
            for measure in registry.parse([name + cut]):
                page = explain_measure(measure)
                assert f"{definition.name} = {definition.formula}" in page
                assert measure.definition is definition


def test_definitions__say_all_that_a_reader_needs():
    for one_of in registry.definitions():
        assert one_of.formula
        assert one_of.question.endswith("?")
        assert one_of.na
        assert one_of.source
        assert one_of.needs
        assert form_of(one_of.aggregate)
        assert words_of(one_of.aggregate)
        assert one_of.cutoff in ("none", "optional", "needed")


def test_register__refuses_a_name_that_is_taken():
    given = Definition("New", "ranked", "f", "na", ("ranked",), "s", "q?", aliases=("ndcg",))
    with pytest.raises(ValueError, match="'ndcg' is taken by 'nDCG'"):
        registry.register(given)
    registry._NAMES.pop("new", None)


def test_specification__of_the_standard_measures():
    spec = ranked.Specification(registry.parse(list(ranked.DEFAULT)))
    assert spec.plain
    assert len(spec.rows) == len(ranked.DEFAULT)
    many = ranked.Specification(registry.parse(["11pt_avg", "AP"]))
    assert [r.stop - r.start for r in many.rows] == [11, 1]
    assert not many.plain
