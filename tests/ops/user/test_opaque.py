"""custom_op: opaque ops of users, with gradients written in Tensors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import jitgrad as jg
import jitgrad.ops.methods
from jitgrad.autograd import gradcheck, gradgradcheck
from jitgrad.core.aval import Aval
from jitgrad.core.errors import AutogradError, InPlaceError, OpDefinitionError, ReadOnlyError, ShapeError
from jitgrad.ops.creation import tensor
from jitgrad.ops.transcendental import pow
from jitgrad.ops.user import custom_op

X = np.array([0.3, 1.0, 2.0])


def leaf(data):
    return tensor(data, dtype="float64", requires_grad=True)


def test_gradients_of_an_op_with_an_attribute():
    @custom_op(vjp=lambda g, _out, x, *, n: g * float(n) * pow(x, n - 1))
    def power(x, *, n):
        """x to the n."""
        return x**n

    assert power(X, n=3).tolist() == pytest.approx((X**3).tolist())
    assert gradcheck(lambda x: power(x, n=3), X)
    assert gradgradcheck(lambda x: power(x, n=3), X)
    assert power.__doc__ == "x to the n."


def test_several_operands_and_results():
    def vjp(g, _out, x, y):
        return g[0] * y + g[1], g[0] * x

    both = custom_op(lambda x, y: (x * y, x.copy()), vjp=vjp)
    product, same = both(X, X + 1.0)

    assert product.tolist() == (X * (X + 1.0)).tolist()
    assert same.tolist() == X.tolist()
    assert gradcheck(both, (X, X + 1.0))
    x = leaf(X)
    both(x, X)[1].sum().backward()  # the other result has no gradient: zeros arrive
    assert x.grad.tolist() == [1.0, 1.0, 1.0]


def test_forward_runs_once_per_call_after_the_first_of_its_kind():
    calls = []

    def forward(x):
        calls.append(x.shape)
        return x * 2

    op = custom_op(forward)
    for _ in range(3):
        op(X)
    assert calls == [(3,)] * 4  # once on ones, to learn the shape of the result
    op = custom_op(forward, abstract=lambda x: (x.shape, x.dtype))
    calls.clear()
    op(X)
    assert calls == [(3,)]


def test_abstract_gives_shape_and_dtype():
    op = custom_op(lambda x: x.sum(axis=0), abstract=lambda x: Aval(x.shape[1:], x.dtype))
    assert op(np.ones((2, 3), np.float32)).aval == Aval((3,), np.dtype(np.float32))
    wrong = custom_op(lambda x: x, abstract=lambda x: (x.shape[1:], x.dtype))
    with pytest.raises(ShapeError, match="returned shape"):
        wrong(X)
    with pytest.raises(OpDefinitionError, match="abstract must return"):
        custom_op(lambda x: x, abstract=lambda x: 5)(X)


@pytest.mark.parametrize("wrap", [lambda f: f, jg.jit], ids=["eager", "jit"])
def test_a_gradient_that_reaches_an_op_without_vjp_is_an_error(wrap):
    f = custom_op(np.sort)
    assert f(X).tolist() == sorted(X)

    with pytest.raises(AutogradError, match=r"custom_op 'sort' at .*test_opaque.py:\d+, which has no vjp"):
        wrap(jg.grad(lambda x: (f(x) * x).sum()))(jg.tensor(X))


@pytest.mark.parametrize("wrap", [lambda f: f, jg.jit], ids=["eager", "jit"])
def test_an_op_declared_without_gradient_passes_none(wrap):
    f = custom_op(np.sort, vjp=jg.no_gradient)
    assert not f(leaf(X)).requires_grad

    gradient = wrap(jg.grad(lambda x: (f(x) * x).sum()))(jg.tensor(X))
    assert gradient.tolist() == sorted(X)


def test_what_a_vjp_returns_is_checked():
    x = leaf(X)
    with pytest.raises(AutogradError, match=r"the vjp of twice at .*py:\d+ returned 2 gradients for 1 operands"):
        custom_op(lambda x: x * 2, vjp=lambda g, _out, _x: (g, g), name="twice")(x).sum().backward()
    with pytest.raises(
        ShapeError, match=r"the vjp of twice at .* returned a gradient f64\[2\] for an operand of shape"
    ):
        custom_op(lambda x: x * 2, vjp=lambda g, _out, _x: g[:2], name="twice")(x).sum().backward()


def test_variadic_operands_beyond_any_number():
    total = custom_op(lambda *xs: sum(x * x for x in xs), vjp=lambda g, _out, *xs: tuple(g * 2.0 * x for x in xs))
    xs = [leaf([float(k)]) for k in range(80)]
    total(*xs).sum().backward()

    assert [x.grad.item() for x in xs] == [2.0 * k for k in range(80)]


BUFFER = np.zeros(3)


def doubled_in_a_buffer(a: np.ndarray) -> np.ndarray:
    return np.multiply(a, 2.0, out=BUFFER)


def doubled_twice(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    b = a * 2.0
    return b, b[::-1]


@pytest.mark.parametrize(
    ("forward", "check"),
    [
        (doubled_in_a_buffer, "eager"),  # @jit refuses its change of a global array
        *itertools.product(
            [lambda a: a, lambda a: a[::-1], doubled_twice, lambda a: (a, a * 2.0)], ["eager", "off", "first"]
        ),
    ],
)
def test_results_have_memory_of_their_own(forward, check):
    op = jg.custom_op(forward=forward, vjp=jg.no_gradient)
    call = op if check == "eager" else jg.jit(lambda x: op(x), check=check, backend="python")
    results = [jg.tensor(np.arange(3.0))]

    for _ in range(3):
        out = call(results[0])
        results += out if isinstance(out, tuple) else (out,)
    for k, y in enumerate(results):
        before = [np.array(x.numpy()) for x in results]
        y += 1.0
        for j, x in enumerate(results):
            np.testing.assert_array_equal(x.numpy(), before[j] + (j == k))


def test_a_fresh_result_is_not_copied():
    addresses = []

    def forward(a):
        b = a * 2.0
        addresses.append(b.ctypes.data)
        return b.reshape(1, 3)

    op = jg.custom_op(forward=forward, abstract=lambda a: ((1, 3), a.dtype), vjp=jg.no_gradient)

    assert op(jg.ones(3)).numpy().ctypes.data == addresses[0]


def add_in_place(x):
    x += 1
    return x * 2


def sort_in_place(x):
    x.sort()
    return x[::-1]


def change_through_a_view(x):
    x.reshape(-1)[0] = 99.0
    return x * 1.0


def fill_as_out(x):
    return np.multiply(x, 2.0, out=x)


@pytest.mark.parametrize("abstract", [None, lambda x: x], ids=["by example", "declared"])
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("forward", [add_in_place, sort_in_place, change_through_a_view, fill_as_out])
def test_a_function_that_changes_its_argument_is_refused(forward, compiled, abstract):
    op = custom_op(forward, abstract=abstract)
    call = jg.jit(lambda x: op(x), backend="python") if compiled else op
    x = tensor([3.0, 1.0, 2.0])

    for _ in range(2):
        with pytest.raises(ReadOnlyError, match=rf"custom op '{forward.__name__}': its function changes an argument.*x.copy()"):
            call(x)
        assert x.tolist() == [3.0, 1.0, 2.0]


def test_other_errors_of_the_function_are_its_own():
    def forward(x):
        raise ValueError("no such file")

    with pytest.raises(ValueError, match=r"^no such file$"):
        custom_op(forward)(X)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_results_can_be_changed_and_have_the_byte_order_of_the_machine(compiled):
    def frozen(x):
        result = x * 2
        result.setflags(write=False)
        return result

    for forward in (frozen, lambda x: (x * 2).astype(">f8"), lambda x: (x * 2).astype(">f8")[::-1]):
        op = custom_op(forward)
        call = jg.jit(lambda x, op=op: op(x), backend="python") if compiled else op
        for _ in range(3):
            result = call(tensor(X))
            assert result.dtype == np.float64 and result.dtype.isnative
            result += 1.0
            assert result.tolist() == (forward(X) + 1.0).tolist()


def double_in_place(g, _out, _x):
    g *= 2.0
    return g


def set_an_element(g, _out, _x):
    g[0] = 5.0
    return g


@pytest.mark.parametrize("vjp", [double_in_place, set_an_element])
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_a_vjp_that_changes_the_incoming_gradient_is_refused(vjp, compiled):
    op = custom_op(lambda x: x * 2, vjp=vjp)

    def loss(x, weights):
        y = x * 1.0
        return ((op(y) + y) * weights).sum()  # one gradient goes to both terms

    gradient = jg.grad(loss)
    call = jg.jit(gradient, backend="python") if compiled else gradient
    line = "" if compiled else f":{vjp.__code__.co_firstlineno + 1}"
    with pytest.raises(InPlaceError, match=rf"custom op 'custom': its vjp changes .*test_opaque.py{line}"):
        call(tensor(X), tensor(X))


def test_shapes_by_example_depend_on_attributes_of_the_same_text():
    class Size:
        def __init__(self, length):
            self.length = length

        def __repr__(self):
            return "size"

    op = custom_op(lambda x, *, size: np.ones(size.length) * x.sum())
    assert [op(X, size=Size(n)).shape for n in (2, 3, 2)] == [(2,), (3,), (2,)]
    by_mask = custom_op(lambda x, *, mask: x[: mask.sum()])
    masks = [np.arange(5000) == k for k in (2000, -1)]  # whose texts are shortened
    assert [by_mask(X, mask=mask).shape for mask in masks] == [(1,), (0,)]
