"""The text of machine code that multiplies windows of images block by block.

A unit is a block of the windows of one group of channels: those in ``block_columns`` columns and ``block_rows`` rows of one
image, or all of ``block_images`` images. Where an image has few windows, several images share a product; its operand or result
on the other side is a copy then, because there every image has a place of its own.

The copies of windows are rows ``pitch`` elements apart, an odd number of cache lines, so that rows under each other do not share
a few sets of the first-level cache.
"""

from __future__ import annotations

from typing import NamedTuple

# ``left_group`` and ``left_part``: elements from one group to the next, and from one element of a window to the next.
CONVOLUTION_ARGS = (
    "code images groups channels m h w rows columns kh kw y_step x_step y_spread x_spread left_group left_part leading "
    "transposed block_images block_rows block_columns block_channels parts_size copy_size partitions"
).split()


class ConvolutionForm(NamedTuple):
    """What the text depends on.

    Attributes:
        columns, step: of a row of windows; numbers, or the names of the variables.
        tiled: whether products go by tiles; else by BLAS.
        merged: whether a block may have several images.
        in_place: whether windows are read and written where they are: kernel and stride are 1.
        transposed: whether the gradient of the weights is.
    """

    dtype: str
    columns: str
    step: str
    tiled: bool
    merged: bool
    in_place: bool
    transposed: bool


_TILES = """
def multiply(code, m, n, k, a, lda, left, b, ldb, right, c, ldc, more):
    row = select(left != 0, 1, lda)
    step = select(left != 0, lda, 1)
    call_code(code, m, a, b, c, m, n, k, row, step, ldb, right, ldc, 0, 0, 0, 0, more)
"""
_BLAS = """
def multiply(code, m, n, k, a, lda, left, b, ldb, right, c, ldc, more):
    call_blas(code, left, right, m, n, k, a, lda, b, ldb, more, c, ldc)
"""
# ``body`` for every row of windows, of which ``window`` is the copy and ``row`` the place in the image
_WINDOWS = """
def {name}(parts, pitch, image, channels, count, height, width, h, w, kh, kw, y_step, x_step, y_spread, x_spread, image_step):
    for c in range(channels):
        for a in range(kh):
            for b in range(kw):
                for n in range(count):
                    for r in range(height):
                        row = at(image, n * image_step + c * h * w + (a * y_spread + r * y_step) * w + b * x_spread)
                        window = at(parts, ((c * kh + a) * kw + b) * pitch + (n * height + r) * {columns})
                        for j in range({columns}):
                            {body}
"""
# [m, count, windows] from or to the places of images; ``x`` is there, ``y`` in the copy
_COPY = """
def {name}(copy, other, m, count, windows, image_step):
    for k in range(m):
        for n in range(count):
            y = at(copy, (k * count + n) * windows)
            x = at(other, n * image_step + k * windows)
            for j in range(windows):
                {body}
"""
_UNIT = """
            s = v % beside * block_columns
            r = v // beside % down * block_rows
            n = v // beside // down * block_images
            width = min(block_columns, columns - s)
            height = min(block_rows, rows - r)
            count = min(block_images, images - n)
            wide = count * height * width
            pitch = (wide + 31) // 32 * 32 + 16
            image_step = groups * channels * h * w
            image = at(images_at, ((n * groups + g) * channels + c) * h * w)
            y = at(other, (n * groups + g) * m * windows + r * columns + s)
"""
_START = """
def {name}(left, images_at, other, {args}, start, stop):
    windows = rows * columns
    size = kh * kw
    inner = channels * size
    beside = (columns - 1) // block_columns + 1
    down = (rows - 1) // block_rows + 1
    across = (channels - 1) // block_channels + 1
    parts = memory_{dtype}(parts_size)
    copy = memory_{dtype}(copy_size)
    for t in range(start, stop):
"""
_END = """
    release(parts)
    release(copy)
"""
_LOOPS = {
    "convolve": """
        g = t % groups
        v = t // groups
        for u in range(across):
            c = u * block_channels
            depth = min(block_channels, channels - c)
{unit}
            weights = at(left, g * left_group + c * size * left_part)
            {unfold}
            multiply(code, m, wide, depth * size, weights, leading, transposed, {parts}, {pitch}, 0, {to}, {to_pitch}, u > 0)
{scatter}
""",
    "convolve_transposed": """
        u = t % across
        g = t // across % groups
        c = u * block_channels
        depth = min(block_channels, channels - c)
        weights = at(left, g * left_group + c * size * left_part)
        for q in range(beside * down):
            v = t // across // groups * beside * down + q
{unit}
{zero}
            {gather}
            multiply(code, depth * size, wide, m, weights, leading, transposed, {to}, {to_pitch}, 0, {parts}, {pitch}, 0)
            {fold}
""",
    "weight_gradient": """
        u = t % across
        g = t // across % groups
        p = t // across // groups
        c = u * block_channels
        depth = min(block_channels, channels - c)
        units = ((images - 1) // block_images + 1) * down * beside
        total = at(left, (p * groups + g) * m * inner + c * size * left_part)
        first = p * units // partitions
        last = (p + 1) * units // partitions
        if first == last:
            for k in range({total_rows}):
                for j in range({total_columns}):
                    total[k * leading + j] = to_{dtype}(0)
        for v in range(first, last):
{unit}
            {unfold}
            {gather}
            multiply(code, {total_rows}, {total_columns}, wide, {factors}, total, leading, v > first)
""",
}
_ZERO = """
            if q == 0:
                for i in range(count):
                    for e in range(depth * h * w):
                        image[i * image_step + e] = to_{dtype}(0)
"""
_SCATTER = """
        scatter(copy, y, m, count, windows, groups * m * windows)
"""


def _pieces(form: ConvolutionForm) -> dict[str, str]:
    """What the loops are filled in with."""
    corner = "at(image, r * y_step * w + s * x_step)"
    steps = "h, w, kh, kw, y_step, x_step, y_spread, x_spread, image_step"
    windows = f"(parts, pitch, {corner}, depth, count, height, width, {steps})"
    pieces = {
        "unit": _UNIT,
        "parts": corner if form.in_place else "parts",
        "pitch": "h * w" if form.in_place else "pitch",
        "to": "copy" if form.merged else "y",
        "to_pitch": "wide" if form.merged else "windows",
        "unfold": "" if form.in_place else f"unfold{windows}",
        "fold": "" if form.in_place else f"fold{windows}",
        "zero": "" if form.in_place else _ZERO.format(dtype=form.dtype),
        "gather": "gather(copy, y, m, count, windows, groups * m * windows)" if form.merged else "",
        "scatter": _SCATTER if form.merged else "",
        "dtype": form.dtype,
    }
    y, x = "{to}, {to_pitch}".format(**pieces), "{parts}, {pitch}".format(**pieces)
    both = ("depth * size", "m", f"{x}, 0, {y}, 1") if form.transposed else ("m", "depth * size", f"{y}, 0, {x}, 1")
    return {**pieces, **dict(zip(("total_rows", "total_columns", "factors"), both, strict=True))}


def convolution_source(name: str, form: ConvolutionForm) -> str:
    """Source of ``name``: "convolve", "convolve_transposed" or "weight_gradient".

    With tiles, and blocks of a part of an image, the loop of "convolve" is::

        for t in range(start, stop):
            g = t % groups
            v = t // groups
            for u in range(across):
                c = u * block_channels
                ...
                unfold(parts, pitch, at(image, r * y_step * w + s * x_step), depth, count, height, width, ...)
                multiply(code, m, wide, depth * size, weights, ..., parts, pitch, 0, y, windows, u > 0)
    """
    pieces = _pieces(form)
    step = form.step
    functions = [
        _TILES if form.tiled else _BLAS,
        _WINDOWS.format(name="unfold", columns=form.columns, body=f"window[j] = row[j * {step}]"),
        _WINDOWS.format(name="fold", columns=form.columns, body=f"row[j * {step}] = row[j * {step}] + window[j]"),
        _COPY.format(name="gather", body="y[j] = x[j]"),
        _COPY.format(name="scatter", body="x[j] = y[j]"),
    ]
    start = _START.format(name=name, args=", ".join(CONVOLUTION_ARGS), dtype=form.dtype)
    text = "".join([*functions, start, _LOOPS[name].format(**pieces), _END])
    return "\n".join(line for line in text.splitlines() if line.strip()) + "\n"
