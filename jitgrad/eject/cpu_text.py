"""The parts of an ejected CPU module that are the same in all of them."""

CPU_HEAD = '''"""{summary}

{body}
"""

{imports}import numba
import numpy as np

CACHE = False  # True: numba keeps machine code on disk; for modules that are imported by their name
PARALLEL = False  # True: kernels over independent rows run on all cores, which pays for large arrays
njit = numba.njit(error_model="numpy", cache=CACHE)
njit_rows = numba.njit(error_model="numpy", cache=CACHE, parallel=PARALLEL)
prange = numba.prange
'''

CPU_CHECKS = {
    "flat_array": '''
def flat_array(name, x, shape, dtype):
    """The elements of ``x`` in C order, which must have this shape and dtype."""
    if isinstance(x, (bool, int, float)) and shape == ():
        x = np.asarray(x, dtype)
    if not isinstance(x, (np.ndarray, np.generic)):
        wanted = f"{np.dtype(dtype).name}{list(shape)}"
        raise TypeError(f"{name} is a {type(x).__name__}; this module takes an array {wanted}")
    if x.shape != shape or x.dtype != dtype:
        raise ValueError(
            f"{name} is {x.dtype}{list(x.shape)}; this module is for {np.dtype(dtype).name}{list(shape)}. "
            "Convert it, or eject the function again with such an argument."
        )
    return np.ascontiguousarray(x).reshape(-1)
''',
    "changed_array": '''
def changed_array(name, x, shape, dtype):
    """The elements of ``x``, into which new values are written."""
    flat = flat_array(name, x, shape, dtype)
    if not (isinstance(x, np.ndarray) and x.flags.c_contiguous and x.flags.writeable):
        raise ValueError(f"{name} is changed in place: pass a writeable array in C order, such as a copy of it")
    return flat
''',
    "strided_array": '''
def strided_array(flat, shape, strides):
    """A view of ``flat`` with these strides, in elements."""
    return np.lib.stride_tricks.as_strided(flat, shape, [step * flat.itemsize for step in strides])
''',
    "result_array": '''
def result_array(x, shape, dtype):
    """The elements of ``x``, which NumPy computed, in C order."""
    return np.array(np.broadcast_to(x, shape), dtype, order="C").reshape(-1)
''',
    "check_value": '''
def check_value(name, found, expected):
    """Arguments that are no arrays are part of the program."""
    if type(found) is not type(expected) or found != expected:
        raise ValueError(f"{name} is {found!r}; this module is for {expected!r}. Eject the function again with that value.")
''',
    "check_apart": '''
def check_apart(arrays, changed):
    """Arrays that are written must not share memory with others."""
    for name in changed:
        for other, x in arrays.items():
            if name != other and np.may_share_memory(x, arrays[name]):
                raise ValueError(f"{name} is changed in place and shares memory with {other}: pass a copy of one")
''',
}
