"""How tests call machine code."""

import ctypes

import numpy as np


def table(*words):
    """An argument table: addresses of arrays, bits of NumPy floats, plain integers."""

    def word(value):
        if isinstance(value, np.ndarray):
            return value.ctypes.data
        if isinstance(value, np.floating):
            return int(value.view(f"u{value.itemsize}"))
        return int(value)

    return np.array([word(value) for value in words], np.int64)


def run(code, words, start, stop):
    kernel = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(code.address)
    kernel(words.ctypes.data, start, stop)
