"""Changes of NumPy arrays whose elements are read by a view, by their memory or by another object."""

from __future__ import annotations

import array
import copy
import ctypes
import struct
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

import jitgrad as jg
from tests.guards.changes import new_table

CASES, case = new_table()

READS: dict[str, Callable[[Any], Any]] = {
    "transposed": lambda a: a.T[0, 1],
    "matrix_transposed": lambda a: a.mT[0, 1],
    "sum_of_the_transpose": lambda a: a.T.sum(),
    "real_part": lambda a: a.real[1, 0],
    "flat": lambda a: a.flat[2],
    "list_of_flat": lambda a: list(a.flat)[2],
    "memory": lambda a: a.data[1, 0],
    "pointer": lambda a: a.ctypes.data_as(ctypes.POINTER(ctypes.c_double))[2],
    "interface": lambda a: np.asarray(SimpleNamespace(__array_interface__=a.__array_interface__))[1, 0],
    "memoryview": lambda a: memoryview(a)[1, 0],
    "bytes": lambda a: np.frombuffer(a.tobytes())[2],
    "strided": lambda a: np.lib.stride_tricks.as_strided(a, (4,), (8,))[2],
    "broadcast": lambda a: np.broadcast_to(a, (2, 2, 2))[0, 1, 0],
    "record": lambda a: a.view(np.recarray)[1, 0],
    "largest_of_rows": lambda a: max(map(max, a)),
    "unpacked": lambda a: (lambda _, row: row[0])(*a),
    "copied": lambda a: copy.copy(a)[1, 0],
    "contains": lambda a: 2.0 if 9.0 in a else 3.0,
}


def _matrix_read(read: Callable[[Any], Any]) -> Callable[[], Any]:
    def make() -> Any:
        a = np.arange(1.0, 5.0).reshape(2, 2)
        return lambda x: x * float(read(a)), lambda: a.__setitem__((1, 0), 9.0)

    return make


CASES.update({f"matrix_{name}": _matrix_read(read) for name, read in READS.items()})


@case
def a_transpose_bound_to_a_name():
    a = np.arange(1.0, 5.0).reshape(2, 2)

    def f(x):
        b = a.T
        return x * float(b.sum()) * float(b[0, 1])

    return f, lambda: a.__setitem__((1, 0), 9.0)


@case
def a_transpose_as_an_operand_and_its_largest():
    a = np.arange(1.0, 10.0).reshape(3, 3)
    return lambda x: (x @ a.T) / float(a.T.max()), lambda: a.__setitem__((1, 0), 90.0)


@case
def a_transpose_of_a_view():
    base = np.arange(1.0, 13.0).reshape(3, 4)
    a = base[:, 1:]

    def f(x):
        b = a.T
        return x * b[0] + float(b.max())

    return f, lambda: base.__setitem__((1, 1), 99.0)


@case
def bytes_behind_an_array():
    held = bytearray(struct.pack("3d", 1.0, 2.0, 3.0))
    values = np.frombuffer(held)
    return lambda x: x * values, lambda: struct.pack_into("d", held, 0, 9.0)


@case
def bytes_that_become_an_array():
    held = bytearray(struct.pack("3d", 1.0, 2.0, 3.0))
    return lambda x: x * np.frombuffer(held), lambda: struct.pack_into("d", held, 0, 9.0)


@case
def memory_of_another_array():
    values = array.array("d", [1.0, 2.0])
    memory = memoryview(values)
    return lambda x: x * memory[0], lambda: values.__setitem__(0, 4.0)


@case
def memory_read_as_numbers():
    held = bytearray(struct.pack("2d", 1.0, 2.0))
    memory = memoryview(held).cast("d")
    return lambda x: x * memory[1], lambda: struct.pack_into("d", held, 8, 5.0)


@case
def elements_by_another_dtype():
    a = np.array([1.0, 2.0, 3.0])
    words = a.view(np.int64)
    return lambda x: x * a, lambda: words.__setitem__(0, np.float64(7.0).view(np.int64))


@case
def shape_assigned():
    a = np.arange(3.0)

    def change():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of NumPy 2.5
            a.shape = (3, 1)

    return lambda x: x + a, change


@case
def mask_of_a_masked_array():
    a = np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0])
    return lambda x: x * float(a.sum()), lambda: a.mask.__setitem__(1, False)


@case
def object_that_gives_an_array():
    class Owner:
        k = 2.0

        def __array__(self, dtype=None, copy=None):
            return np.full(3, self.k)

    owner = Owner()
    return lambda x: x * jg.asarray(owner), lambda: setattr(owner, "k", 3.0)


@case
def list_in_an_array_of_objects():
    a = np.array([1.0, [2.0]], dtype=object)
    return lambda x: x * a[1][0], lambda: a[1].__setitem__(0, 5.0)


@case
def index_in_a_list():
    rows, index = jg.tensor(np.arange(12.0).reshape(4, 3)), [np.array(1), np.array(2)]
    return lambda x: rows[index[0]] + x, lambda: index[0].__setitem__((), 3)
