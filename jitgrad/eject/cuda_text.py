"""The parts of an ejected CUDA module that are the same in all of them."""

from jitgrad.eject.cpu_text import CPU_CHECKS

CUDA_HEAD = '''"""{summary}

{body}
"""

import math

{imports}import numba
import numpy as np
from numba import cuda

try:
    import cupy  # multiplies matrices on the device
except ImportError:
    cupy = None  # NumPy multiplies copies on the host

THREADS = 256  # the most in a block, and the size of what they share
device_function = cuda.jit(device=True)
'''

CUDA_DIVIDE = '''

@device_function
def divide(x, y):
    """IEEE's quotient, infinite or NaN where ``y`` is 0, which numba.cuda's is and Python's is not."""
    return x / y
'''

CUDA_CHECKS = CPU_CHECKS | {
    "flat_array": '''
def flat_array(name, x, shape, dtype):
    """The elements of ``x`` in C order on the device; ``x`` must have this shape and dtype."""
    if isinstance(x, (bool, int, float)) and shape == ():
        x = np.asarray(x, dtype)
    if not isinstance(x, (np.ndarray, np.generic)):
        if not hasattr(x, "copy_to_host") and not hasattr(x, "__cuda_array_interface__"):
            wanted = f"{np.dtype(dtype).name}{list(shape)}"
            raise TypeError(f"{name} is a {type(x).__name__}; this module takes an array {wanted}")
        x = x if hasattr(x, "copy_to_host") else cuda.as_cuda_array(x)
    if x.shape != shape or x.dtype != dtype:
        raise ValueError(
            f"{name} is {x.dtype}{list(x.shape)}; this module is for {np.dtype(dtype).name}{list(shape)}. "
            "Convert it, or eject the function again with such an argument."
        )
    if isinstance(x, (np.ndarray, np.generic)):
        return cuda.to_device(np.ascontiguousarray(x).reshape(-1))
    if not x.is_c_contiguous():
        raise ValueError(f"{name} is not in C order: pass a copy of it")
    return x.reshape(-1)
''',
    "changed_array": '''
def changed_array(name, x, shape, dtype):
    """The elements of ``x``, into which new values are written."""
    flat = flat_array(name, x, shape, dtype)
    if isinstance(x, (bool, int, float, np.generic)) or (isinstance(x, np.ndarray) and not x.flags.writeable):
        raise ValueError(f"{name} is changed in place: pass a writeable array, such as a copy of it")
    return flat
''',
    "copy_back": '''
def copy_back(x, flat):
    """Give ``x``, an array that is changed in place, its new values, if it is not on the device itself."""
    if isinstance(x, np.ndarray):
        x[...] = flat.copy_to_host().reshape(x.shape)
''',
    "host": '''
def host(x):
    """``x`` as NumPy's array."""
    return x.copy_to_host() if hasattr(x, "copy_to_host") else np.asarray(x)
''',
    "library_array": '''
def library_array(flat):
    """A flat device array as cupy's; a copy on the host where there is no cupy."""
    return flat.copy_to_host() if cupy is None else cupy.asarray(flat)
''',
    "write": '''
def write(flat, part, value):
    """Write ``value`` into ``part(flat)`` of a device array."""
    memory = library_array(flat)
    part(memory)[...] = host(value) if cupy is None else cupy.asarray(value)
    if cupy is None:
        flat.copy_to_device(memory)
''',
    "strided_array": '''
def strided_array(flat, shape, strides):
    """A view of ``flat`` with these strides, in elements."""
    library = np if isinstance(flat, np.ndarray) else cupy
    return library.lib.stride_tricks.as_strided(flat, shape, [step * flat.itemsize for step in strides])
''',
    "check_apart": '''
def check_apart(arrays, changed):
    """Arrays that are written must not share memory with others."""
    for name in changed:
        for other, x in arrays.items():
            if name != other and share_memory(x, arrays[name]):
                raise ValueError(f"{name} is changed in place and shares memory with {other}: pass a copy of one")


def share_memory(x, y):
    """Whether the two arrays have memory in common, on the host or on the device."""
    about = [getattr(a, "__cuda_array_interface__", None) for a in (x, y)]
    if any(a is None for a in about):
        return about == [None, None] and np.may_share_memory(host(x), host(y))
    (a, n), (b, m) = ((d["data"][0], math.prod(d["shape"]) * np.dtype(d["typestr"]).itemsize) for d in about)
    return a < b + m and b < a + n
''',
}
