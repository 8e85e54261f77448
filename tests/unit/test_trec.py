"""Reading TREC text: messy files, compression, block borders, threads, refusals and lines."""

import os
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcore.errors import InputError
from ragcore.formats.bytes import kind_of, open_bytes
from ragcore.formats.trec import read_qrels, read_run, to_arrow

quiet = settings(derandomize=True, deadline=None, max_examples=60)
CLEAN = b"".join(b"%d Q0 d%d %d %d.5 t\n" % (i // 7, i, i % 7 + 1, 99 - i) for i in range(40))


@pytest.fixture
def write(tmp_path):
    def write(text, name="file"):
        path = tmp_path / name
        path.write_bytes(text)
        return path

    return write


def rows(table):
    arrow = to_arrow(table)
    assert arrow.num_rows == table.n_rows
    return list(zip(*(column.to_pylist() for column in arrow.columns), strict=True))


def pack(text, codec):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(text)
    return sink.getvalue().to_pybytes()


# --- the messy files ----------------------------------------------------------------------

READ = {
    "real/robust03_rutcor03100.run": (200, {}),
    "real/robust03_uic0301.run": (200, {}),
    "real/robust03_UIUC03Rd1.run": (200, {}),
    "real/robust03_NLPR03vb10.run": (200, {}),
    "real/web_negative.qrels": (120, {}),
    "real/scifact_test_crlf.tsv": (339, {"header line": 1}),
    "real/covid_rounds.qrels": (82, {}),
    "real/cacm_ids.qrels": (796, {}),
    "real/miracl_hash_ids.qrels": (60, {}),
    "made/clean.run": (20, {}),
    "made/clean.qrels": (8, {}),
    "made/bom.run": (20, {"byte order mark": 1}),
    "made/crlf.run": (20, {}),
    "made/no_final_newline.run": (20, {}),
    "made/blank_lines.run": (20, {"blank lines": 24}),
    "made/empty.run": (0, {}),
    "made/only_space.run": (0, {"blank lines": 2}),
    "made/tabs_spaces.run": (20, {}),
    "made/seven_columns.run": (20, {"lines with extra fields": 20}),
    "made/exponent.run": (20, {}),
    "made/all_tied.run": (20, {}),
    "made/rising_scores.run": (20, {"rank conflicts": 19}),
    "made/huge_scores.run": (20, {}),
    "made/float_rank.run": (20, {"unreadable ranks": 20}),
    "made/huge_rank.run": (20, {}),
    "made/text_rank.run": (20, {"unreadable ranks": 20}),
    "made/same_rank.run": (20, {}),
    "made/dup_doc.run": (22, {"rank conflicts": 2}),
    "made/mixed_tags.run": (20, {"other run tags": 10}),
    "made/unicode_ids.run": (22, {}),
    "made/unicode_ids.qrels": (22, {}),
    "made/latin1.run": (20, {"lines that are not UTF-8": 20}),
    "made/negative_rel.qrels": (8, {}),
    "made/conflict.qrels": (9, {}),
    "made/dup_same.qrels": (9, {}),
    "made/header.qrels": (8, {"header line": 1}),
    "made/all_zero.qrels": (8, {}),
    "made/other_queries.qrels": (8, {}),
    "made/ok.run.gz": (20, {}),
}
REFUSED = {
    "real/cranqrel": (1, "3 fields in '1 184 2'", "4 fields", "header line"),
    "made/five_columns.run": (1, "5 fields in '1 Q0 CACM-1938 1 12.033000'", "6 fields", "run tag"),
    "made/short_line.run": (6, "3 fields in '1 Q0 CACM-9'", "6 fields", "no score"),
    "made/csv.run": (1, "1 field in 'query,q0,doc,rank,score,tag'", "6 fields", "not commas"),
    "made/nan_score.run": (1, "score 'nan'", "a number", "drop the row"),
    "made/text_score.run": (3, "score 'high'", "decimal number", ""),
    "made/comma_decimal.run": (1, "score '12,033000'", "decimal number", "decimal point"),
    "made/hex_and_plus.run": (1, "score '12.033000f'", "decimal number", "remove the 'f'"),
    "made/float_rel.qrels": (1, "grade '1.0'", "an integer", "float grades"),
    "made/three_columns.qrels": (1, r"3 fields in '1\tCACM-1410\t1'", "4 fields", "header line"),
    "made/missing_rel.qrels": (1, "3 fields in '1 Q0 CACM-1410'", "4 fields", "grade is missing"),
}


def reader(name):
    return read_run if ".run" in name else read_qrels


@pytest.mark.parametrize("name", READ)
def test_messy__read(shared_data, name):
    table = reader(name)(shared_data / "messy" / name)
    assert (table.n_rows, table.notes) == READ[name]


@pytest.mark.parametrize("name", REFUSED)
def test_messy__refused(shared_data, name):
    with pytest.raises(InputError) as caught:
        reader(name)(shared_data / "messy" / name)
    line, found, wanted, hint = REFUSED[name]
    error = caught.value
    assert (error.line, error.found) == (line, found)
    assert wanted in error.wanted
    assert hint in error.hint


def test_messy__every_file_is_decided_and_listed(shared_data):
    folder = shared_data / "messy"
    files = {f"{path.parent.name}/{path.name}" for path in folder.glob("*/*")}
    assert files == READ.keys() | REFUSED.keys()
    page = (Path(__file__).resolve().parents[2] / "docs" / "messy-inputs.md").read_text()
    assert [name for name in sorted(files) if page.count(f"`{name}`") != 1] == []


def test_messy__float_grades_by_option(shared_data):
    table = read_qrels(shared_data / "messy/made/float_rel.qrels", float_grades=True)
    assert rows(table) == rows(read_qrels(shared_data / "messy/made/clean.qrels"))


def test_messy__mended_files_hold_the_clean_rows(shared_data):
    made = shared_data / "messy" / "made"
    clean = rows(read_run(made / "clean.run"))
    same = ("bom", "crlf", "no_final_newline", "blank_lines", "tabs_spaces", "seven_columns")
    for name in (*same, "float_rank", "huge_rank", "text_rank", "same_rank", "mixed_tags"):
        assert rows(read_run(made / f"{name}.run")) == clean, name
    assert rows(read_run(made / "ok.run.gz")) == clean
    assert rows(read_qrels(made / "header.qrels")) == rows(read_qrels(made / "clean.qrels"))


# --- what a file may hold -----------------------------------------------------------------


def test_run__fields_tag_and_notes(write):
    table = read_run(write(b" \n# 7 Q0 d 1 1.0 r\n\t1 Q0 a#b 1 2.0 my run\r\n1 Q0 b 2 3 other"))
    assert rows(table) == [("1", "a#b", 2.0), ("1", "b", 3.0)]
    assert (table.kind, table.tag) == ("run", "my")
    assert table.notes == {
        "comment lines": 1,
        "blank lines": 1,
        "lines with extra fields": 1,
        "other run tags": 1,
        "rank conflicts": 1,
    }


def test_qrels__crlf_tabs_blank_line_and_no_last_newline(write):
    table = read_qrels(write(b"1\t0\ta\t1\r\n\r\n1 0  b 0"))
    assert rows(table) == [("1", "a", 1), ("1", "b", 0)]
    assert (table.kind, table.notes) == ("qrels", {"blank lines": 1})
    assert table.blocks[0].values.dtype == np.int32


def test_ids__are_bytes(write):
    names = ["\u00a0a\u3000b", "a\0b", "\x1c", "x" * 10_000, "é", "e\u0301", "\ufeff", '"q"']
    text = "".join(f"q\u2003 Q0 {name} 1 0 t\n" for name in names).encode()
    assert rows(read_run(write(text))) == [("q\u2003", name, 0.0) for name in names]
    table = read_run(write(b"\xe9 Q0 d 1 0 t\nq Q0 \xc3 1 0 t\nq Q0 \xa9 1 0 \xff\n"))
    assert rows(table) == [(b"\xe9", b"d", 0.0), (b"q", b"\xc3", 0.0), (b"q", b"\xa9", 0.0)]
    assert table.notes == {"lines that are not UTF-8": 3, "other run tags": 1}


def test_scores__long_and_infinite_are_exact(write):
    rng = random.Random(5)
    scores = [rng.choice((1, -1, 1e-300, 1e300)) * rng.random() for _ in range(3_000)]
    scores += [np.inf, -np.inf, 5e-324, 1e308, 0.1 + 0.2]
    tokens = [repr(score) for score in scores] + ["+1e400", "-1e-400", "+17.123456789012345678"]
    text = "".join(f"q Q0 d{i} 1 {token} t\n" for i, token in enumerate(tokens)).encode()
    found = np.concatenate([block.values for block in read_run(write(text)).blocks])
    assert found.tobytes() == np.array([float(token) for token in tokens]).tobytes()


@pytest.mark.parametrize(
    "text", [b"", b"\n", b"\n\r\n \n", b"# only\n", b"\xef\xbb\xbf", b"#", b" "]
)
def test_no_data__is_a_table_of_no_rows(write, text):
    for read in (read_run, read_qrels):
        table = read(write(text))
        assert (table.n_rows, table.blocks, table.tag) == (0, [], "")
        assert to_arrow(table).num_rows == 0


@pytest.mark.parametrize(
    "header",
    [b"query-id\tcorpus-id\tscore", b"query-id corpus-id score\r", b" Query_ID docid REL "],
)
def test_header__names_the_columns(write, header):
    table = read_qrels(write(b"\xef\xbb\xbf# a\n\n" + header + b"\n1\ta\t2\n\n2\tb\t0\n"))
    assert rows(table) == [("1", "a", 2), ("2", "b", 0)]
    assert table.notes == {
        "byte order mark": 1, "header line": 1, "comment lines": 1, "blank lines": 2
    }  # fmt: skip
    assert [table.line(row) for row in range(2)] == [4, 6]


def test_header__columns_in_another_order(write):
    table = read_qrels(write(b"score iter docno qid\n2 0 a 1\n-1 0 b 1"))
    assert rows(table) == [("1", "a", 2), ("1", "b", -1)]
    with pytest.raises(InputError, match="4 fields, as in the header line") as caught:
        read_qrels(write(b"score iter docno qid\n2 0 a 1\n-1 b 1"))
    assert caught.value.line == 3


# --- refusals -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("read", "bad", "found", "hint"),
    [
        (read_run, b"q Q0 d 1 2.0", "5 fields in 'q Q0 d 1 2.0'", "add a run tag"),
        (read_run, b"q 0 d 1", "4 fields in 'q 0 d 1'", "four fields are qrels"),
        (read_run, b"q d 1", "3 fields in 'q d 1'", "no score"),
        (read_run, b"q Q0 d 1 NaN t", "score 'NaN'", "NaN has no place"),
        (read_run, b"q Q0 d 1 0x10 t", "score '0x10'", ""),
        (read_run, b"query q0 doc rank score tag", "score 'score'", "no header line"),
        (read_run, b"q Q0 d 1 \xff t", r"score '\\xff'", ""),
        (read_run, b"q " + b"x" * 300, f"2 fields in 'q {'x' * 55}...'", ""),
        (read_qrels, b"q 0 d 0.5", "grade '0.5'", "map the grades to integers"),
        (read_qrels, b"q 0 d yes", "grade 'yes'", ""),
        (read_qrels, b"q 0 d 1.0", "grade '1.0'", "float grades"),
        (read_qrels, b"q 0 d 2147483648", "grade '2147483648'", ""),
        (read_qrels, b"q 0 d e 1", "5 fields in 'q 0 d e 1'", "no white space"),
        (read_qrels, b"q Q0 d 1 2.0 t", "6 fields in 'q Q0 d 1 2.0 t'", "six fields are a run"),
        (read_qrels, b"q,0,d,1", "1 field in 'q,0,d,1'", "not commas"),
    ],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_refusal__names_line_and_token(write, read, bad, found, hint, threads):
    good = b"q Q0 d 1 2.0 t\n" if read is read_run else b"q 0 d 1\n"
    text = b"\xef\xbb\xbf# one\n\n" + good * 50 + b" \r\n" + bad + b"\r\n" + good * 5 + bad + b"\n"
    for block_bytes in (1, 64, 1 << 20):
        with pytest.raises(InputError) as caught:
            read(write(text), threads=threads, block_bytes=block_bytes)
        assert (caught.value.line, caught.value.found) == (54, found)
        assert hint in caught.value.hint
        assert bool(hint) == bool(caught.value.hint)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"PK\x03\x04....", "kind zip"),
        (b"BZh91AY&SY....", "kind bzip2"),
        (b"\xfd7zXZ\0....", "kind xz"),
        (b"ARROW1\0\0....", "kind Arrow file"),
        (b"\xff\xff\xff\xff....", "kind Arrow stream"),
        (b"PAR1\x15....", "kind Parquet"),
        ("1 Q0 a 1 2.0 t\n".encode("utf-16"), "kind UTF-16"),
        (b"1 Q0 a 1 2.0 t\r1 Q0 b 2 1.0 t\r", "carriage returns"),
        (b"# a\r1 Q0 a 1 2.0 t\r1 Q0 b 2 1.0 t\r\n", "carriage returns"),
    ],
)
def test_refusal__what_is_no_lines_of_text(write, content, found):
    with pytest.raises(InputError, match=found) as caught:
        read_run(write(content, "a.run"))
    assert caught.value.hint


def test_refusal__no_file(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_run(tmp_path / "absent.run")
    with pytest.raises(InputError, match="a directory"):
        read_run(tmp_path)
    with pytest.raises(ValueError, match="threads"):
        read_run(tmp_path, threads=0)


def test_plain__ids_that_look_like_magic(write):
    for text in (b"PAR1 Q0 a 1 2 t\n", b"BZh9 Q0 a 1 2 t\n", b"PK Q0 a 1 2 t\n"):
        assert rows(read_run(write(text))) == [(text.split()[0].decode(), "a", 2.0)]


# --- compression, blocks, threads ---------------------------------------------------------


@pytest.mark.parametrize("codec", ["gzip", "zstd", "lz4"])
def test_compressed__equals_plain(write, codec):
    text = CLEAN + b"\n# c\n9 Q0 last 1 1 t"
    packed = pack(text, codec)
    assert kind_of(packed) == codec
    plain = read_run(write(text))
    for content in (packed, pack(text[:500], codec) + pack(text[500:], codec)):
        for block_bytes in (7, 100, 1 << 20):
            table = read_run(write(content, "odd.txt"), block_bytes=block_bytes, threads=2)
            assert (rows(table), table.notes) == (rows(plain), plain.notes)
            assert table.line(40) == plain.line(40) == 43
    for end in (-1, -5, len(packed) // 2):
        with pytest.raises(InputError, match=f"{codec} data that ends early") as caught:
            read_run(write(packed[:end], "short.run"))
        assert caught.value.where.endswith("short.run")


def test_pipe__is_read_once(write):
    reading, writing = os.pipe()
    os.write(writing, CLEAN)
    os.close(writing)
    table = read_run(f"/dev/fd/{reading}")
    os.close(reading)
    assert rows(table) == rows(read_run(write(CLEAN)))
    assert table.line(39) == 40


lines_of = st.lists(
    st.sampled_from(
        [
            b"q Q0 d 1 2.0 t",
            b"q Q0 e 2 3.0 t",
            b"q Q0 \xc3\xa9 0 0.12345678901234567 u",
            b"#",
            b"",
            b"r Q0 d x 1e400 t extra",
            b"r Q0 \xff 3 -1 t",
            b"q Q0 f 9 1 t",
            b" \r",
            b"s Q0 d 1 1 t\r",
        ]
    ),
    max_size=20,
)


@quiet
@given(lines_of, st.integers(1, 60), st.booleans())
def test_blocks_and_threads__never_change_the_result(tmp_path_factory, lines, block_bytes, end):
    path = tmp_path_factory.mktemp("blocks") / "a.run"
    text = b"\n".join(lines) + b"\n" * end
    path.write_bytes(text)
    whole = read_run(path)
    for threads in (1, 2):
        table = read_run(path, threads=threads, block_bytes=block_bytes)
        assert (rows(table), table.notes, table.tag) == (rows(whole), whole.notes, whole.tag)
        data = [i for i, line in enumerate(text.split(b"\n"), 1) if line.strip(b" \r#")]
        assert [table.line(row) for row in range(table.n_rows)] == data


def test_blocks__have_exact_sizes(write):
    table = read_run(write(CLEAN), block_bytes=200, threads=2)
    assert len(table.blocks) > 3
    for block in table.blocks:
        assert block.doc_offsets.dtype == block.query_offsets.dtype == np.int32
        assert block.doc_offsets.size == block.n_rows + 1
        assert block.doc_data.size == block.doc_offsets[-1]
        assert block.query_offsets.size == block.segment_rows.size
        assert block.query_data.size == block.query_offsets[-1]
        assert block.segment_rows[[0, -1]].tolist() == [0, block.n_rows]
        assert block.values.base is None
    with pytest.raises(IndexError):
        table.line(40)


def test_line__long_lines_across_blocks(write):
    text = b"# c\n" + b"".join(b"q Q0 %b 1 1 t\n\n" % (b"x" * k) for k in (1, 10_000, 3, 500))
    table = read_run(write(text), block_bytes=50)
    assert [len(doc) for _, doc, _ in rows(table)] == [1, 10_000, 3, 500]
    assert [table.line(row) for row in range(4)] == [2, 4, 6, 8]


def test_source__blocks_join_to_the_text(write):
    for text in (CLEAN, CLEAN[:-1], b"", b"\n\n", b"x"):
        for packed in (text, pack(text, "gzip")):
            source = open_bytes(write(packed))
            for size in (1, 13, 1 << 20):
                blocks = list(source.blocks(size))
                joined = b"".join(block.tobytes() for _, block in blocks)
                assert joined == text + b"\n" * (not text.endswith(b"\n") and text != b"")
                starts = np.cumsum([0, *(block.size for _, block in blocks)])[:-1]
                assert [start for start, _ in blocks] == starts.tolist()
