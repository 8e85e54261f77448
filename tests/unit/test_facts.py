"""Facts of texts: numerals, dates, identifiers, negators; what a rewrite or an answer changes."""

from __future__ import annotations

from collections import defaultdict

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcore.answers import facts as f
from ragcore.answers.identifiers import is_code

# --- what is and is not a fact

HARD = [
    ("2025-13-01", "identifier 2025-13-01"),
    ("Feb 30, 2020", "number 30, number 2020"),
    ("you may ask in May", "date --05"),
    ("May I march?", ""),
    ("2019-20", "number 2019, number 20"),
    ("CVE-2025-07-01", "identifier cve-2025-07-01"),
    ("3个月", "number 3"),
    ("3年", "number 3"),
    ("五个四川人，十分好，十分钟，万一", "number 5, number 10"),
    ("一个 一些 哪一年 一年", "number 1"),
    ("三四个，五四运动", ""),
    ("四分卫", ""),
    ("5千米和5千克", "number 5, number 5"),
    ("10-20", "number 10, number 20"),
    ("10%-20%", "number 10%, number 20%"),
    ("a -5 b", "number -5"),
    ("24/7", "number 24, number 7"),
    ("10 m² and 5½", "number 10, number 5, number 0.5"),
    ("１００，２００", "number 100200"),
    ("100，200", "number 100, number 200"),
    ("1,2,3", "number 1, number 2, number 3"),
    ("3rd third 第三 第3", "ordinal 3, ordinal 3, ordinal 3, ordinal 3"),
    ("第十二章", "ordinal 12"),
    ("First, the first", "ordinal 1"),
    ("one or two", "number 2"),
    ("5m or $5m", "number 5, number 5000000USD"),
    ("5m dollars", "number 5000000USD"),
    ("1. x\n2. y 3", "number 3"),
    ("①甲②乙", ""),
    ("EV-A7-SEC3", "identifier ev-a7-sec3"),
    ("RC-104, R39.", "identifier rc-104, identifier r39"),
    ("v2.1.3", "version 2.1.3"),
    ("version 2.1.3", "version 2.1.3"),
    ("2.1.3版", "version 2.1.3"),
    ("v2.0-rc1", "version 2.0-rc1"),
    ("Python 3.11", "number 3.11"),
    ("5G 10km 3GB", "identifier 5g, number 10, number 3"),
    ("24-hour 12th-century phase-2", "number 24, date 12c, number 2"),
    ("GPT-4 gpt‑4", "identifier gpt-4, identifier gpt-4"),
    ("010-12345678", "identifier 010-12345678"),
    ("007", "identifier 007"),
    ("0.5", "number 0.5"),
    ("https://a.b/c?d=1. me@x.org", "identifier https://a.b/c?d=1, identifier me@x.org"),
    ("PM2.5浓度", "identifier pm2.5"),
    ("my_var_id", "identifier my_var_id"),
    ("fig.2 No.5", "number 2, number 5"),
    ("沪A12345", "identifier a12345"),
    ("2024/25", "number 2024, number 25"),
    ("元旦 3元素", "number 3"),
    ("3.50 3.5", "number 3.5, number 3.5"),
    ("١٢٣", "number 123"),
    ("", ""),
    ("no digits", "negator not"),
    ("9" * 50, "number " + "9" * 50),
    ("1e99", "number 1" + "0" * 99),
    ("1e999", "identifier 1e999"),
]


@pytest.mark.parametrize(("text", "wanted"), HARD, ids=range(len(HARD)))
def test_facts__of_hard_texts(text, wanted):
    found = ", ".join(f"{x.kind} {x.value}{x.unit}" for x in f.facts(text))
    assert found == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("not only A but B", ""),
        ("I don't, can't, isn’t", "don't can't isn't"),
        ("cannot never without none", "cannot never without none"),
        ("No. 5, nos. 3", ""),
        ("no matter, no doubt, whether or not, yes or no", ""),
        ("not-for-profit knot", ""),
        ("non-smokers must not", "non not"),
        ("forbidden or prohibited", "forbidden prohibited"),
        ("Neither A nor B", "Neither nor"),
        ("nothing but", ""),
        ("No!", "No"),
        ("是不是 有没有 能不能 好不好 会不会", ""),
        ("他去过没有？", ""),
        ("没有去过", "没有"),
        ("非常 不过 不仅 无论 未来 是非 南非 淹没 除非", ""),
        ("不得不", ""),
        ("不得", "不得"),
        ("非常好，不过不便宜", "不"),
        ("解决不同的事", ""),
        ("完全不同意", "不"),
        ("禁止吸烟，严禁烟火，请勿入内", "禁止 严禁 请勿"),
        ("沒有 無法", "没有 无法"),
        ("从未，并非，绝不，毫无", "从未 并非 绝不 毫无"),
        ("是不是不能吃", "不能"),
        ("不超过100元", "不"),
    ],
)
def test_negators__and_words_that_only_look_like_them(text, wanted):
    assert " ".join(x.text for x in f.facts(text, ["negator"])) == wanted


@pytest.mark.parametrize(
    ("run", "wanted"),
    [
        ("EV-A7", True),
        ("10-K", True),
        ("24-hour", False),
        ("100km/h", False),
        ("abc", False),
        ("a_b", True),
        ("_", False),
        ("12", False),
        ("1-2-3", True),
        ("page3", False),
    ],
)
def test_is_code(run, wanted):
    assert is_code(run) is wanted


hostile = st.text(
    st.sampled_from("0129.,-/:%$¥元年月日时点分之第一十百万亿零abV v2不没有非\n\x00，１²½①st"),
    max_size=30,
) | st.text(max_size=25)


@given(hostile)
def test_facts__lie_apart_and_protect_themselves(text):
    found = f.facts(text)
    end = 0
    for x in found:
        assert x.kind in f.KINDS
        assert x.value
        assert x.text == x.text.strip()
        assert x.start >= end
        end = x.start + len(x.text)
    same = f.lost(text, text)
    assert same.absent == ()
    assert same.kept == same.total <= len(found)
    assert f.unsupported_facts(text, [text], n_passages=0).absent == ()
    assert sum(map(len, f.protected(text).values())) == len(found)


@pytest.mark.parametrize(
    "part", ["1", "1,", "一", "一百", "1-", "a-1-", "万", "2025 ", "not ", "a_"]
)
def test_facts__of_endless_runs(part):
    """Whole numbers of thousands of digits are never made: they are compared as they stand."""
    text = part * 2000
    found = f.facts(text)
    assert f.lost(text, text).absent == ()
    assert not found or found[-1].start + len(found[-1].text) <= len(text)
    if part == "1":
        assert [(x.kind, x.value) for x in found] == [("number", text)]


# --- rewrites and answers


def test_lost__counts_what_a_rewrite_drops():
    question = "2025年7月1日，EV-A7-SEC3 不能超过100元吗？"
    same = "May EV-A7-SEC3 not exceed 100 yuan on July 1, 2025?"
    assert f.lost(question, same) == (4, 4, ())
    found = f.lost(question, "May ev-a7-sec3 exceed 100 on July 2, 2025?")
    assert (found.kept, found.total) == (1, 4)
    assert [x.kind for x in found.absent] == ["date", "negator", "number"]


@pytest.mark.parametrize(
    ("question", "rewritten", "absent"),
    [
        ("in 2025", "2025年", ""),
        ("2025年", "July 2025", ""),
        ("July 2025", "2025", "July 2025"),
        ("5 and 5 and 5", "5", ""),
        ("not A, not B", "no A or B", "not"),
        ("no", "不", ""),
        ("12.5%", "12.5", "12.5%"),
        ("v2.1", "v2.1.3", "v2.1"),
        ("the 3rd", "三", "3rd"),
        ("RC-104", "rc-104", ""),
        ("RC-104", "RC 104", "RC-104"),
        ("", "5", ""),
        ("5", "", "5"),
    ],
)
def test_lost__of_small_changes(question, rewritten, absent):
    assert " ".join(x.text for x in f.lost(question, rewritten).absent) == absent


@pytest.mark.parametrize(
    ("answer", "spans", "absent"),
    [
        (
            "It rose 12.5% to 1,200 in July 2025 [1], the 3rd year. [2]",
            ["12.5 (%), 1200", "On 2025-07-01, year 3"],
            "",
        ),
        ("It rose 12.5%", ["12.5元"], "12.5%"),
        ("In 2024", ["2025年7月1日"], "2024"),
        ("In 2025", ["2025年7月1日"], ""),
        ("1 July 2025", ["in 2025, in July"], "1 July 2025"),
        ("on 07/01/2025", ["2025年1月7日"], ""),
        ("2025年7月1日", ["07/01/2025"], ""),
        ("共13人", ["十二人"], "13"),
        ("EV-A7 is not there", [""], ""),
        ("5 and 5", [], "5"),
        ("[1] said 7 [2, 3]", ["seven"], ""),
        ("[2019] was", ["x"], "2019"),
        ("at 3 pm", ["15:00"], ""),
        ("no facts", [], ""),
    ],
)
def test_unsupported_facts__of_answers(answer, spans, absent):
    assert " ".join(x.text for x in f.unsupported_facts(answer, spans).absent) == absent


def test_unsupported_facts__counts():
    found = f.unsupported_facts("3, 4 and 5 of 3", ["3", "4.0"])
    assert (found.kept, found.total) == (2, 3)
    assert f.unsupported_facts("none", ["3"]) == (0, 0, ())
    cited = f.unsupported_facts("See [5].", [], n_passages=3)
    assert [x.value for x in cited.absent] == ["5"]


# --- real texts


def test_facts__agree_across_translations(shared_data):
    """Numbers and dates of parallel English and Chinese texts: translators kept nearly all."""
    for name, least in (("corpus", 0.86), ("queries", 0.85)):
        pairs = defaultdict(dict)
        for row in pq.read_table(shared_data / f"xquad/{name}.parquet").to_pylist():
            pairs[row["parallel_id"]][row["lang"]] = row["text"]
        same = total = 0
        for texts in pairs.values():
            left, right = (
                {x.value for x in f.facts(texts[lang], ["date", "time", "number"])}
                for lang in ("en", "zh")
            )
            same, total = same + len(left & right), total + len(left | right)
        assert total > 200
        assert same / total > least, (name, same, total)


def test_unsupported_facts__of_reference_answers_are_few(shared_data):
    """Human answers rest on their passages: ClapNQ's answers, CMRC's spans."""
    for name, column, least in (("clapnq", "text", 0.97), ("cmrc2018", "text", 0.98)):
        folder = shared_data / name
        corpus = pq.read_table(folder / "corpus.parquet", columns=["doc_id", "text"]).to_pylist()
        passages = {row["doc_id"]: row["text"] for row in corpus}
        kept = total = 0
        rows = pq.read_table(folder / "answers.parquet").to_pylist()
        for row in rows[:: 2 if name == "clapnq" else 18]:
            found = f.unsupported_facts(row[column], [passages[row["doc_id"]]])
            kept, total = kept + found.kept, total + found.total
        assert total > 150
        assert kept / total > least, (name, kept, total)
