"""The text kernels against plain Python: splitting, decimals, ranks and UTF-8."""

import random
import struct
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcore_kernels import lines
from ragcore_kernels._jit import JIT, compiled_count

quiet = settings(derandomize=True, deadline=None, max_examples=200 if JIT else 25)
WHITE = b" \t\v\f\r"


def ids(offsets, data):
    return [data[a:b].tobytes() for a, b in pairwise(offsets)]


def columns(text, value):
    """Fresh arrays for any text: one row for every byte is more than a kernel can fill."""
    n = len(text) + 1
    docs = np.zeros(n, np.int32), np.zeros(n, np.uint8)
    segments = np.zeros(n, np.int64), np.zeros(n, np.int32), np.zeros(n, np.uint8)
    return docs, np.zeros(n, value), segments, np.zeros(lines.N_COUNTS, np.int64)


def run(text, tag=b"t"):
    raw, mark = np.frombuffer(text or b"\n", np.uint8), np.frombuffer(tag, np.uint8)
    docs, scores, segments, counts = columns(text, np.float64)
    n = scores.size
    ranks, slow = np.zeros(n, np.int64), np.zeros(n, np.int64)
    texts = np.zeros(n, np.int32), np.zeros(n, np.uint8)
    lines.parse_run(
        *(raw.ctypes.data, len(text), mark.ctypes.data, mark.size),
        *(*docs, scores, ranks, *segments, slow, *texts, counts),
    )
    rows, late = counts[lines.ROWS], counts[lines.SLOW]
    waiting = dict(zip(slow[:late].tolist(), ids(texts[0][: late + 1], texts[1]), strict=True))
    return (*rows_of(docs, scores, segments, counts), ranks[:rows], waiting, counts)


def qrels(text, width=4, fields=(0, 2, 3), floats=False):
    raw = np.frombuffer(text or b"\n", np.uint8)
    docs, grades, segments, counts = columns(text, np.int32)
    where = (raw.ctypes.data, len(text), width, *fields, floats)
    lines.parse_qrels(*where, *docs, grades, *segments, counts)
    return (*rows_of(docs, grades, segments, counts), counts)


def rows_of(docs, values, segments, counts):
    n_rows, n_segments = counts[lines.ROWS], counts[lines.SEGMENTS]
    lengths = np.diff(segments[0][: n_segments + 1])
    assert (lengths > 0).all()
    assert lengths.sum() == n_rows
    names = ids(segments[1][: n_segments + 1], segments[2])
    assert all(a != b for a, b in pairwise(names))
    queries = [name for name, k in zip(names, lengths, strict=True) for _ in range(k)]
    return queries, ids(docs[0][: n_rows + 1], docs[1]), values[:n_rows]


def bits(value):
    return struct.pack("<d", value)


def score_of(token):
    """The score that the kernel, or float() in its stead, gives to a token; None if refused."""
    _, _, scores, _, waiting, counts = run(b"q Q0 d 1 " + token + b" t\n")
    if counts[lines.ERROR]:
        assert counts[lines.ERROR] == lines.VALUE
        return None
    if waiting:
        assert waiting == {0: token}
        assert np.isnan(scores[0])
        return float(token)
    return float(scores[0])


# --- decimals -----------------------------------------------------------------------------


def random_decimal(rng):
    pick = rng.random()
    if pick < 0.3:
        return repr(struct.unpack("<d", rng.randbytes(8))[0]).encode()
    if pick < 0.5:
        return f"{rng.uniform(-1000, 1000):.{rng.randint(0, 20)}f}".encode()
    whole = "".join(rng.choices("0123456789", k=rng.randint(0, rng.choice((3, 25)))))
    part = "".join(rng.choices("0123456789", k=rng.randint(not whole, rng.choice((6, 25)))))
    power = rng.choice(("", "", f"e{rng.randint(-400, 400)}", f"E+{rng.randint(0, 25)}"))
    sign, point = rng.choice(("", "-", "+")), "." * bool(part)
    return f"{sign}{whole}{point}{part}{power}".encode()


def test_decimals__are_those_of_float_to_the_last_bit():
    rng = random.Random(20)
    tokens = [random_decimal(rng) for _ in range(100_000 if JIT else 2_000)]
    tokens = [token for token in tokens if b"nan" not in token]
    _, _, scores, _, waiting, counts = run(b"".join(b"q Q0 d 1 %b t\n" % t for t in tokens))
    assert counts[lines.ROWS] == len(tokens)
    assert 0 < len(waiting) < len(tokens)
    for row, token in waiting.items():
        assert token == tokens[row]
        scores[row] = float(token)
    assert scores.tobytes() == np.array([float(token) for token in tokens]).tobytes()


PLAIN = b"0 -0 -0.0e7 1. .5 -.5e-3 1E5 1e+5 00012.5 12.033000 8.228515625 9007199254740993 1e22"
WIDE = (
    b"1e23 1e308 1e309 -1e400 5e-324 1e-400 2.4703282292062327e-324 123456789012345678901234567890"
)
POWERS = b"0e99999999999999999999 1e99999999999999999999 1e-99999999999999999999"
LONG = [b"0." + b"0" * 400 + b"1", b"1" + b"0" * 400]
ENDLESS = b"inf -INF +Infinity -iNFINITY"


@pytest.mark.parametrize(
    "token", [*PLAIN.split(), *WIDE.split(), *POWERS.split(), *LONG, *ENDLESS.split()]
)
def test_score__reads_every_decimal_and_infinity(token):
    assert bits(score_of(token)) == bits(float(token))


NO_NUMBER = b"nan -NaN +nan nan(1) 0x10 1.5f 1,5 1_000 high e5 . - + +-1 --1 1e 1e+ 1e5.0 1.2.3"
NO_WORD = b"infinit in infx -. .e1 1\0 \xef\xbc\x91 \xc9nf"


@pytest.mark.parametrize("token", [*NO_NUMBER.split(), *NO_WORD.split()])
def test_score__refuses_what_is_no_decimal(token):
    assert score_of(token) is None


@quiet
@given(st.text("+-.0123456789eEinfaINFtyx_,", min_size=1, max_size=30))
def test_score__accepts_what_float_accepts(token):
    text = token.encode()
    try:
        expected = float(token)
    except ValueError:
        expected = None
    if "_" in token or expected != expected:
        expected = None
    found = score_of(text)
    assert (found is None) == (expected is None)
    assert found is None or bits(found) == bits(expected)


# --- lines --------------------------------------------------------------------------------

space = st.text(WHITE.decode(), min_size=1, max_size=3).map(str.encode)
edge = st.text(WHITE.decode(), max_size=2).map(str.encode)
field = st.binary(min_size=1, max_size=12).map(
    lambda b: bytes(c for c in b if c not in b" \t\v\f\r\n")
)
field = field.filter(lambda b: b and not b.startswith(b"#")) | st.sampled_from(
    [b"q1", b"q2", "\u00a0id\u3000".encode(), b"a#b", b"\0", b"\x1c\x1f", b"x" * 300]
)
number = st.sampled_from([b"1", b"-2.5", b"1e3", b"0.1", b"12345678901234567890", b"-inf", b"+7"])
grade = st.sampled_from([b"0", b"1", b"-1", b"+2", b"007", b"2147483647", b"-2147483648"])
rank = st.sampled_from([b"1", b"2", b"-3", b"1.0", b"first", b"1099511627776", b"9" * 30])
tag = st.sampled_from([b"t", b"t", b"tt", b"u"])
other = st.tuples(
    edge, st.sampled_from([b"", b"#", b"# q Q0 d 1 2 t", b"#7 Q0 d 1 x r", b"#7 0 d"])
)
ends = st.sampled_from([b"\n", b"\r\n", b" \n"])


@st.composite
def line_of(draw, *kinds, extra=False):
    if draw(st.integers(0, 4)) == 0:
        return b"".join(draw(other)) + draw(ends)
    text = draw(edge)
    for k, kind in enumerate(kinds):
        text += (draw(space) if k else b"") + draw(kind)
    if extra and draw(st.booleans()):
        text += draw(space) + draw(field)
    return text + draw(edge) + draw(ends)


def begins_a_query(fields):
    """Whether a line that starts with # is a whole row, the # being part of its query id."""
    number = fields[4] if len(fields) > 5 else fields[3] if len(fields) == 4 else b"x"
    return fields[0] != b"#" and number.lstrip(b"+-")[:1].isdigit()


def plain(text):
    """Fields of every line that is neither blank nor a comment, and counts of those that are."""
    rows, comments, blanks = [], 0, 0
    for line in text.split(b"\n")[:-1]:
        fields = line.split()
        if not fields:
            blanks += 1
        elif fields[0].startswith(b"#") and not begins_a_query(fields):
            comments += 1
        else:
            rows.append(fields)
    return rows, comments, blanks


run_text = st.lists(line_of(field, field, field, rank, number, tag, extra=True), max_size=12)


@quiet
@given(run_text.map(b"".join))
def test_run__equals_a_plain_splitter(text):
    queries, docs, scores, ranks, waiting, counts = run(text)
    rows, comments, blanks = plain(text)
    for row, token in waiting.items():
        scores[row] = float(token)
    assert queries == [row[0] for row in rows]
    assert docs == [row[2] for row in rows]
    assert scores.tolist() == [float(row[4]) for row in rows]
    known = [row[3] not in (b"1.0", b"first", b"9" * 30) for row in rows]
    assert [int(r) for r in ranks] == [
        int(row[3]) if ok else int(lines.UNRANKED) for row, ok in zip(rows, known, strict=True)
    ]
    assert counts[lines.COMMENTS] == comments
    assert counts[lines.BLANKS] == blanks
    assert counts[lines.EXTRA] == sum(len(row) > 6 for row in rows)
    assert counts[lines.NO_RANK] == len(rows) - sum(known)
    assert counts[lines.OTHER_TAG] == sum(row[5] != b"t" for row in rows)
    assert counts[lines.ERROR] == 0


@quiet
@given(st.lists(line_of(field, field, field, grade), max_size=12).map(b"".join))
def test_qrels__equal_a_plain_splitter(text):
    queries, docs, grades, counts = qrels(text)
    rows, comments, blanks = plain(text)
    assert queries == [row[0] for row in rows]
    assert docs == [row[2] for row in rows]
    assert grades.tolist() == [int(row[3]) for row in rows]
    assert (counts[lines.COMMENTS], counts[lines.BLANKS]) == (comments, blanks)
    assert counts[lines.ERROR] == 0


def test_hash__is_part_of_a_query_id_where_the_line_is_whole():
    queries, _, scores, _, _, counts = run(b"#7 Q0 d 1 1.5 r\n#7 Q0 d 1 high r\n# 7 Q0 d 1 2 r\n")
    assert (queries, scores.tolist()) == ([b"#7"], [1.5])
    assert (counts[lines.HASHED], counts[lines.COMMENTS]) == (1, 2)
    queries, _, grades, counts = qrels(b"#7 0 d 1\n#7 0 d\n#7 0 d x\n#7 0 d 1 2\n")
    assert (queries, grades.tolist()) == ([b"#7"], [1])
    assert (counts[lines.HASHED], counts[lines.COMMENTS]) == (1, 3)


@quiet
@given(st.lists(line_of(grade, field, field), max_size=6).map(b"".join))
def test_qrels__take_columns_from_any_place(text):
    queries, docs, grades, _ = qrels(text, 3, (2, 1, 0))
    rows = plain(text)[0]
    assert (queries, docs) == ([row[2] for row in rows], [row[1] for row in rows])
    assert grades.tolist() == [int(row[0]) for row in rows]


@pytest.mark.parametrize(
    "bad", [b"q Q0 d 1 2.0", b"q Q0 d", b"q", b"q Q0 d 1 2.0 ", b" q Q0 d 1 2\r"]
)
def test_run__stops_at_a_short_line(bad):
    good = b"q Q0 d 1 2.0 t\n\n"
    queries, docs, *_, counts = run(good + bad + b"\n" + good)
    assert (queries, docs) == ([b"q"], [b"d"])
    assert (counts[lines.ERROR], counts[lines.POSITION]) == (lines.FIELDS, len(good))


@pytest.mark.parametrize("bad", [b"q 0 d", b"q 0 d 1 1", b"q", b"q Q0 d 1 2.0 t", b" q 0 d \r"])
def test_qrels__stop_at_a_line_of_another_width(bad):
    *_, counts = qrels(b"q 0 d 1\n" + bad + b"\nq 0 e 1\n")
    assert counts[lines.ROWS] == 1
    assert (counts[lines.ERROR], counts[lines.POSITION]) == (lines.FIELDS, 8)


@pytest.mark.parametrize(
    ("token", "strict", "floats"),
    [
        (b"1", 1, 1),
        (b"-1", -1, -1),
        (b"+3", 3, 3),
        (b"1.0", None, 1),
        (b"2.", None, 2),
        (b"-1.000", None, -1),
        (b"0.5", None, None),
        (b"1.01", None, None),
        (b".0", None, None),
        (b"yes", None, None),
        (b"1e0", None, None),
        (b"-", None, None),
        (b"1.0x", None, None),
        (b"2147483648", None, None),
        (b"-2147483649", None, None),
        (b"9" * 40, None, None),
        (b"0" * 40 + b"7", 7, 7),
        (b"nan", None, None),
    ],
)
def test_grade__is_an_integer_of_32_bits(token, strict, floats):
    for option, wanted in ((False, strict), (True, floats)):
        *_, grades, counts = qrels(b"q 0 d " + token + b"\n", floats=option)
        assert grades.tolist() == ([] if wanted is None else [wanted])
        assert counts[lines.ERROR] == (lines.VALUE if wanted is None else 0)


def test_empty__gives_no_row():
    assert run(b"")[-1].tolist() == [0] * lines.N_COUNTS
    assert qrels(b"")[-1].tolist() == [0] * lines.N_COUNTS


# --- ranks and UTF-8 ----------------------------------------------------------------------


@quiet
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3), st.integers(-1, 2)), max_size=20))
def test_rank_conflicts__count_neighbours_that_move_together(rows):
    text = b"".join(b"q%d Q0 d %b %d t\n" % (q, b"%d" % r if r else b"-", s) for q, r, s in rows)
    queries, _, scores, ranks, _, counts = run(text)
    starts = [i for i in range(len(rows)) if i == 0 or queries[i] != queries[i - 1]]
    found = lines.rank_conflicts(
        ranks, scores, np.array([*starts, len(rows)]), counts[lines.SEGMENTS]
    )
    assert found == sum(
        a[0] == b[0] and a[1] * b[1] != 0 and (b[1] - a[1]) * (b[2] - a[2]) > 0
        for a, b in pairwise(rows)
    )


def is_utf8(data):
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


TRICKY = b"""\xc3\xa9 \xc3 \xa9 \xc0\x80 \xe0\x80\x80 \xe0\xa0\x80 \xed\xa0\x80 \xed\x9f\xbf
\xf0\x80\x80\x80 \xf0\x90\x80\x80 \xf4\x8f\xbf\xbf \xf4\x90 \xf4\x90\x80\x80 \xf5\x80\x80\x80
\xe2\x82 \xf0\x9f\x98 a \xff \x7f"""
tricky = st.sampled_from(TRICKY.split())
name = st.binary(max_size=6) | st.lists(tricky, max_size=4).map(b"".join)


@quiet
@given(st.lists(name, min_size=1, max_size=8), name)
def test_not_utf8__counts_each_row_by_its_own_bytes(docs, query):
    def arrow(values):
        offsets = np.cumsum([0, *map(len, values)]).astype(np.int32)
        return offsets, np.frombuffer(b"".join(values) or b"\0", np.uint8).copy()

    n = len(docs)
    found = lines.rows_not_utf8(
        *arrow([*docs, b"d"]), np.array([0, n, n + 1]), *arrow([query, b"q"])
    )
    assert found == sum(not (is_utf8(doc) and is_utf8(query)) for doc in docs)


@pytest.mark.skipif(not JIT, reason="nothing is compiled")
def test_kernels__have_one_specialisation():
    run(b"q Q0 d 1 1 t\n")
    qrels(b"q 0 d 1\n")
    for kernel in (lines.parse_run, lines.parse_qrels, lines.rank_conflicts, lines.rows_not_utf8):
        assert compiled_count(kernel) <= 1
