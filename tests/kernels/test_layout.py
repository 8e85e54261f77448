"""The contract between Arrow memory and the kernels: piece tables, CSR and read-only views."""

import numpy as np
import pytest

from ragcore_kernels import layout


def test_pieces__number_their_rows_on():
    rows = [(3, layout.OFFSETS32, 1, 2, 0, 0, 0), (0, layout.VIEWS, 0, 0, 0, 0, 0)]
    table = layout.pieces([*rows, (2, layout.CODES, 5, 0, layout.VIEWS, 6, 7)])
    assert table.dtype == np.int64
    assert table[:, layout.BASE].tolist() == [0, 3, 3]
    assert table[2, : layout.BASE].tolist() == [2, layout.CODES, 5, 0, layout.VIEWS, 6, 7]
    assert layout.pieces([]).shape == (0, layout.PIECE_FIELDS)


@pytest.mark.parametrize("offsets", [[0], [0, 0, 0], [0, 2, 2, 5]])
def test_check_csr__accepts_what_describes_the_values(offsets):
    layout.check_csr(np.array(offsets, np.int64), offsets[-1])


@pytest.mark.parametrize(
    ("offsets", "n", "message"),
    [
        (np.array([0, 1], np.int32), 1, r"int32\[2\].*astype"),
        (np.array([], np.int64), 0, r"int64\[0\]"),
        (np.zeros((2, 1), np.int64), 0, r"int64\[2, 1\]"),
        (np.array([1, 2], np.int64), 2, "from 1 to 2; wanted 0 to 2"),
        (np.array([0, 2], np.int64), 3, "from 0 to 2; wanted 0 to 3"),
        (np.array([0, 4, 1, 2], np.int64), 2, r"case 1: offsets\[1\]=4 > offsets\[2\]=1"),
    ],
)
def test_check_csr__names_the_first_fault(offsets, n, message):
    with pytest.raises(ValueError, match=message):
        layout.check_csr(offsets, n)


def test_frozen__is_a_read_only_view_that_copies_only_where_it_must():
    array = np.arange(6, dtype=np.int64)
    view = layout.frozen(array, np.int64)
    assert np.shares_memory(view, array)
    assert array.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1
    strided = layout.frozen(array[::2], np.float64)
    assert strided.flags.c_contiguous
    assert (strided.dtype, strided.tolist()) == (np.float64, [0.0, 2.0, 4.0])
