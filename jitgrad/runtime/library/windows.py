"""Windows of images, copied out and added back, as machine code that needs no Python.

NumPy's functions copy and add on one thread. Here each thread takes some planes (images of one channel): the plane that
windows are read from, or added to, stays in the first-level cache.
"""

from __future__ import annotations

from functools import cache
from math import prod

from jitgrad.backends.llvm.code_object import CodeObject, compile_entry
from jitgrad.compiler.lowering.layout import ArgSlot
from jitgrad.compiler.plan import OpStep
from jitgrad.core.aval import dtype_name
from jitgrad.ops.convolution import FOLD, UNFOLD
from jitgrad.runtime.executor.instruction_loop import KERNEL, Instruction

# Windows in a row up to so many have a loop of fixed length: a general loop takes longer to start than they take.
MAX_FIXED = 32
MAX_FIXED_STEP = 2  # steps from one window to the next that the machine code knows, for vectors
_BLOCK_ELEMENTS = 1 << 15  # of windows in a block, some 4 us
_COPIED = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}  # elements that are only copied are copied as integers
_ADDED = frozenset({"f32", "f64", "i32", "i64"})

# A plane is ``h`` by ``w``, and has ``rows`` by ``columns`` windows of ``kh`` by ``kw``. ``y_step`` and ``x_step`` are from one
# window to the next; ``y_spread`` and ``x_spread`` from one element of a window to the next.
_ARGS = "image parts h w rows columns kh kw y_step x_step y_spread x_spread".split()
_LOOPS = """
def windows({args}, start, stop):
    for plane in range(start, stop):
        pixels = at(image, plane * h * w)
        part = at(parts, plane * kh * kw * rows * columns)
{zero}
        for a in range(kh):
            for b in range(kw):
                for r in range(rows):
                    row = at(pixels, (a * y_spread + r * y_step) * w + b * x_spread)
                    window = at(part, ((a * kw + b) * rows + r) * {columns})
                    for j in range({columns}):
                        {body}
"""
_ZERO = """
        for e in range(h * w):
            pixels[e] = to_{dtype}(0)
"""


@cache
def _code(dtype: str, adds: bool, columns: str, step: str) -> CodeObject:
    params = (f"{dtype}*", f"{dtype}*", *["i64"] * (len(_ARGS) - 2))
    source = window_source(dtype, adds, columns, step)
    return compile_entry(source, "windows", {}, params=params, key="", wait=False)


def window_source(dtype: str, adds: bool, columns: str, step: str) -> str:
    """Source that copies windows out of planes or, with ``adds``, adds windows up to planes.

    ``columns`` and ``step`` are numbers, or the parameters ``columns`` and ``x_step``. With ``dtype`` f32, ``adds``, 8 and 1
    the innermost loop is::

        for j in range(8):
            row[j * 1] = row[j * 1] + window[j]

    Windows are added in the order of their elements, as NumPy's function does, so the bits are the same.
    """
    body = f"row[j * {step}] = row[j * {step}] + window[j]" if adds else f"window[j] = row[j * {step}]"
    zero = _ZERO.format(dtype=dtype).strip("\n") if adds else ""
    return _LOOPS.format(args=", ".join(_ARGS), zero=zero, columns=columns, body=body).replace("\n\n", "\n")


def window_copies(step: OpStep) -> Instruction | None:
    """The instruction for an ``unfold`` or a ``fold`` of contiguous arrays; None for other steps."""
    if step.op not in (UNFOLD, FOLD):
        return None
    adds = step.op is FOLD
    (read,), (write,) = step.reads, step.writes
    image, parts = (write, read) if adds else (read, write)
    locations = [p.location for p in (image, parts) if p.location is not None and p.location.is_contiguous(p.aval.shape)]
    if len(locations) < 2 or not parts.aval.size:
        return None
    name = dtype_name(image.aval.dtype) if adds else _COPIED.get(image.aval.dtype.itemsize)
    if name is None or (adds and name not in _ADDED):
        return None
    args: list[ArgSlot] = [(at.buffer, at.offset) for at in locations]
    *planes, h, w = image.aval.shape
    kh, kw, rows, columns = parts.aval.shape[-4:]
    args += [h, w, rows, columns, kh, kw, *step.attrs["stride"], *step.attrs["dilation"]]
    count, along = prod(planes), step.attrs["stride"][1]
    code = _code(
        name,
        adds,
        str(columns) if columns <= MAX_FIXED else "columns",
        str(along) if along <= MAX_FIXED_STEP else "x_step",
    )
    return Instruction(KERNEL, code, args, count, max(1, _BLOCK_ELEMENTS * count // parts.aval.size))
