"""Convolutions of one channel a group, without products of matrices: each result is a sum of a few multiples of an image.

A matrix of windows has one row for each element of a window here, and weights of one or a few rows: a product of such matrices
reads and writes memory only. The code has the weights in registers and the rows of an image in the first-level cache.
"""

from __future__ import annotations

from textwrap import indent
from typing import NamedTuple

DEPTHWISE_ARGS = (
    "images groups m h w rows columns y_step x_step y_spread x_spread left_group left_row left_part partitions"
).split()


class DepthwiseForm(NamedTuple):
    """What the text depends on.

    Attributes:
        columns, step: of a row of windows; numbers, or the names of the parameters.
    """

    dtype: str
    kernel: tuple[int, int]
    columns: str
    step: str


# row ``a`` of those windows where it is row ``q`` of the image
_ROW = """
r = (q - {a} * y_spread) // y_step
if 0 <= r < rows and r * y_step == q - {a} * y_spread:
    z = at(y, r * {columns})
{add}
""".strip()
_START = """
def {name}(left, images_at, other, {args}, start, stop):
"""
_LOOPS = {
    "convolve": """
    for t in range(start, stop):
        image = at(images_at, t * h * w)
        for k in range(m):
            weights = at(left, t % groups * left_group + k * left_row)
            {weights}
            for r in range(rows):
                z = at(other, ((t * m + k) * rows + r) * {columns})
                {pixels}
                for j in range({columns}):
                    z[j] = {sum}
""",
    "convolve_transposed": """
    for t in range(start, stop):
        image = at(images_at, t * h * w)
        for e in range(h * w):
            image[e] = to_{dtype}(0)
        for k in range(m):
            weights = at(left, t % groups * left_group + k * left_row)
            {weights}
            y = at(other, (t * m + k) * rows * {columns})
            for q in range(h):
                row = at(image, q * w)
                {starts}
                if y_step == 1 and {reach} * y_spread <= q < rows:
                    {lines}
                    {sums}
                else:
                    {additions}
""",
    "weight_gradient": """
    sums = memory_{dtype}({size} * {columns})
    for t in range(start, stop):
        g = t % groups
        p = t // groups
        for k in range(m):
            for e in range({size} * {columns}):
                sums[e] = to_{dtype}(0)
            for n in range(p * images // partitions, (p + 1) * images // partitions):
                image = at(images_at, (n * groups + g) * h * w)
                for r in range(rows):
                    z = at(other, (((n * groups + g) * m + k) * rows + r) * {columns})
                    {pixels}
                    {products}
            for e in range({size}):
                row = at(sums, e * {columns})
                total = to_{dtype}(0)
                for j in range({columns}):
                    total = reassoc_add(total, row[j])
                left[((p * groups + g) * m + k) * {size} + e] = total
    release(sums)
""",
}


def depthwise_source(name: str, form: DepthwiseForm) -> str:
    """Source of ``name``: "convolve", "convolve_transposed" or "weight_gradient"; an iteration is an image of one channel, or a
    part of the images for the gradient of the weights.

    With windows of 1 by 2 elements, and a step of 1, the innermost loop of "convolve" is::

        for j in range(columns):
            z[j] = x0[j * 1] * w0 + x1[j * 1] * w1

    The gradient of an image goes by its rows: all rows of windows that reach one are added to it at once.
    """
    (kh, kw), columns, step = form.kernel, form.columns, form.step
    places = [(a, b, a * kw + b) for a in range(kh) for b in range(kw)]
    many = {
        "{weights}": [f"w{e} = weights[{e} * left_part]" for _, _, e in places],
        "{pixels}": [f"x{e} = at(image, (r * y_step + {a} * y_spread) * w + {b} * x_spread)" for a, b, e in places],
        "{starts}": [f"p{b} = at(row, {b} * x_spread)" for b in range(kw)],
        "{lines}": [f"y{a} = at(y, (q - {a} * y_spread) * {columns})" for a in range(kh)],
        "{sums}": [
            _added(form, f"p{b}[j * {step}]", " + ".join(f"y{a}[j] * w{a * kw + b}" for a in range(kh))) for b in range(kw)
        ],
        "{additions}": [_ROW.format(a=a, columns=columns, add=_additions(form, a)) for a in range(kh)],
        "{products}": [
            f"s{e} = at(sums, {e} * {columns})\n" + _added(form, f"s{e}[j]", f"z[j] * x{e}[j * {step}]") for _, _, e in places
        ],
    }
    total = " + ".join(f"x{e}[j * {step}] * w{e}" for _, _, e in places)
    values = {"dtype": form.dtype, "columns": columns, "size": kh * kw, "reach": kh - 1, "sum": total}
    text = []
    for line in _LOOPS[name].splitlines():
        part = line.strip()
        rows = many[part] if part in many else [part.format(**values)]
        text += [indent(row, line[: len(line) - len(part)]) for row in rows]
    return _START.format(name=name, args=", ".join(DEPTHWISE_ARGS)) + "\n".join(text) + "\n"


def _added(form: DepthwiseForm, element: str, term: str) -> str:
    """A loop that adds ``term`` to ``element`` for every ``j``."""
    return f"for j in range({form.columns}):\n    {element} = {element} + {term}"


def _additions(form: DepthwiseForm, a: int) -> str:
    """Row ``a`` of the windows, times its weights, added to the row of an image."""
    kw = form.kernel[1]
    loops = [_added(form, f"p{b}[j * {form.step}]", f"z[j] * w{a * kw + b}") for b in range(kw)]
    return indent("\n".join(loops), "    ")
