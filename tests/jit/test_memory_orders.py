"""What is_contiguous() and contiguous() decide in a trace holds for calls whose tensors lie in memory alike."""

import numpy as np
import pytest

import jitgrad as jg

SQUARE = np.arange(9.0).reshape(3, 3)
LAYOUTS = {
    "whole": lambda: jg.tensor(SQUARE),
    "transposed": lambda: jg.tensor(SQUARE.T).T,
    "part": lambda: jg.tensor(np.tile(SQUARE, (1, 2)))[:, :3],
    "array": SQUARE.copy,
}


def by_order(x):
    return x * 2 if jg.asarray(x).is_contiguous() else x * 3


def of_a_view(x):
    return x * 2 if x[None].is_contiguous() else x * 3


def of_a_detached_tensor(x):
    return x * 2 if x.detach().is_contiguous() else x * 3


def of_a_view_of_a_detached_tensor(x):
    return x * 2 if x.detach()[None].is_contiguous() else x * 3


def in_grad(x):
    return jg.grad(lambda x: by_order(x).sum())(x)


def change_of_what_contiguous_gives(x):
    y = x.contiguous()
    y += 1
    return y + x


@pytest.mark.parametrize("first", ["whole", "transposed", "part"])
@pytest.mark.parametrize(
    "function",
    [
        by_order,
        of_a_view,
        of_a_detached_tensor,
        of_a_view_of_a_detached_tensor,
        in_grad,
        change_of_what_contiguous_gives,
    ],
)
def test_each_call_decides_by_its_own_argument(function, first):
    compiled = jg.jit(function, check="off")

    for layout in (first, "whole", "part", "transposed", "whole"):
        for _ in range(2):
            eager, fused = LAYOUTS[layout](), LAYOUTS[layout]()
            assert np.array_equal(function(eager).numpy(), compiled(fused).numpy()), layout
            assert np.array_equal(eager.numpy(), fused.numpy()), layout
    assert compiled.cache_info().traces == 2


def test_an_array_has_its_axes_in_order():
    compiled = jg.jit(by_order, check="off")

    assert np.array_equal(compiled(SQUARE).numpy(), SQUARE * 2)
    assert np.array_equal(compiled(SQUARE.T).numpy(), SQUARE.T * 2)


def test_why_retraced_names_the_argument():
    compiled = jg.jit(by_order, check="off")
    compiled(LAYOUTS["whole"]())
    compiled(LAYOUTS["transposed"]())

    assert "argument 0 is a view in another order" in str(compiled.why_retraced())
