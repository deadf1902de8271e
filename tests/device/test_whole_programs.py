"""Small programs as users write them give on the device what they give on the host, states and exceptions included."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import lax, nn, optim
from jitgrad.nn import functional as F
from jitgrad.utils.checkpoint import checkpoint
from tests.agreement import leaves

Program = Callable[[str], Any]
PROGRAMS: dict[str, Program] = {}


def program(function: Program) -> Program:
    PROGRAMS[function.__name__] = function
    return function


def drawn(*shape: int, seed: int = 0, place: str) -> jg.Tensor:
    return jg.tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float32), device=place)


@program
def adamw_with_schedule_and_clipping(place: str) -> Any:
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2)).to(place)
    optimizer = optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, 5)

    @jg.jit
    def step(x: Any, t: Any) -> Any:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), t)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        schedule.step()
        return loss

    losses = [step(drawn(5, 6, place=place), jg.tensor([0, 1, 1, 0, 1], device=place)) for _ in range(4)]
    return losses, list(model.parameters()), float(optimizer.param_groups[0]["lr"])


@program
def convnet_with_batch_norm_and_dropout(place: str) -> Any:
    body = [nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.3), nn.Flatten()]
    model = nn.Sequential(*body, nn.Linear(16, 3)).to(place)
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)

    @jg.jit
    def step(x: Any, t: Any) -> Any:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), t)
        loss.backward()
        optimizer.step()
        return loss

    x = drawn(3, 2, 4, 4, place=place)
    losses = [step(x, jg.tensor([0, 2, 1], device=place)) for _ in range(3)]
    model.eval()
    return losses, list(model.state_dict().values()), model(x)


@program
def random_numbers(place: str) -> Any:
    x = jg.ones((4, 10), device=place)
    return [F.dropout(x, 0.4), jg.bernoulli(x * 0.3), jg.rand(3, device=place), jg.multinomial(x[0], 3), jg.randn_like(x)]


@program
def embedding_and_indices(place: str) -> Any:
    table = nn.Embedding(7, 4, padding_idx=0).to(place)
    i = jg.tensor([[1, 2, 0], [2, 2, 6]], device=place)
    (table(i) ** 2).sum().backward()
    w = table.weight
    return [w.grad, w[i], w[1:3, ::2], w[:, -1], w[w > 0], w[[0, 2]], w[i[0], 1], w.gather(0, i[:, :1]), jg.nonzero(w > 0)]


@program
def changes_in_place(place: str) -> Any:
    x = jg.tensor(np.arange(24, dtype=np.float32).reshape(4, 6), device=place)
    v = x[1:3, ::2]
    v += 10
    v.mul_(2)
    x[x > 40] = -1
    x[:, 1][2] = 99
    x.view(-1)[3] = 5
    x.T[0, 0] = 123
    z = x.clone()
    z[[0, 2]] += 1
    z[jg.arange(4, device=place), jg.arange(4, device=place)] = 0
    a = jg.tensor(np.arange(6, dtype=np.float32).reshape(2, 3), device=place).requires_grad_()
    b = a * 2
    b[0] *= 3
    b[:, 1] = a[:, 0] ** 2
    b.sum().backward()
    return [x, v, z.masked_fill_(z == 0, 3.5).clamp_(-5, 50), a.grad, b]


@program
def buffers_changed_by_a_step(place: str) -> Any:
    buffer, count = jg.zeros((3, 4), device=place), jg.tensor(0, device=place)

    @jg.jit
    def step(x: Any) -> Any:
        buffer[1] += x
        buffer.mul_(2)
        count.add_(1)
        part = buffer[:, :2]
        part -= 1
        return buffer.sum()

    return [step(drawn(4, seed=k, place=place)) for k in range(3)], buffer, count


@program
def python_reads_numbers(place: str) -> Any:
    x = drawn(5, place=place)
    return [
        x.sum().item(), float(x[2]), int(x.argmax()), bool((x > 0).any()), x.tolist(), len(x), list(map(float, x)),
        f"{x[0]:.3f}", str(x.dtype), [10, 20, 30, 40, 50][x.argmin()], repr(x.cpu()),
    ]  # fmt: skip


@program
def copies_and_pickles(place: str) -> Any:
    model = nn.Linear(3, 2).to(place)
    x = jg.tensor(np.arange(12, dtype=np.float32).reshape(3, 4), device=place)
    one, other = pickle.loads(pickle.dumps((x, x[:, 1])))
    both = copy.deepcopy([x, x])
    both[0] += 1
    again = pickle.loads(pickle.dumps(model))
    return [one, other, both[1], x, *again.parameters(), *copy.deepcopy(model).parameters(), again.weight.device == place]


@program
def exceptions_in_a_step(place: str) -> Any:
    w = jg.ones(3, device=place)

    @jg.jit
    def step(x: Any, n: int) -> Any:
        w.add_(1)
        if n > 2:
            raise ValueError("too many")
        return (w * x).sum()

    found: list[Any] = []
    for n in (1, 3, 1, 5, 2):
        try:
            found.append(step(drawn(3, place=place), n))
        except ValueError as error:
            found.append(str(error))
    return found, w


@program
def indices_out_of_bounds(place: str) -> Any:
    x, read = drawn(4, place=place), jg.jit(lambda x, i: x[i] * 2)
    found: list[Any] = []
    for run in (lambda i: x[i], lambda i: read(x, i), lambda i: x.index_add(0, i, x[:2])):
        for i in ([0, 1], [0, 9], [3, 2]):
            try:
                found.append(run(jg.tensor(i, device=place)).tolist())
            except IndexError:
                found.append("IndexError")
    return found


@program
def threads_share_a_function(place: str) -> Any:
    f = jg.jit(lambda x: jg.softmax(x @ x.T, axis=-1).sum(0))
    results: list[Any] = [None] * 3

    def run(k: int) -> None:
        results[k] = [f(drawn(4, 3, seed=k, place=place)) for _ in range(2)][-1]

    threads = [Thread(target=run, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@program
def recurrent_layers(place: str) -> Any:
    model, x = nn.LSTM(3, 4, batch_first=True).to(place), drawn(2, 4, 3, place=place).requires_grad_()
    y, (h, c) = model(x)
    (y.sum() + h.mean() + c.mean()).backward()
    return [y, h, c, x.grad, [p.grad for p in model.parameters()]]


@program
def transforms(place: str) -> Any:
    w, x = drawn(3, 2, place=place), drawn(4, 3, seed=1, place=place)

    def loss(w: Any, x: Any) -> Any:
        return (jg.tanh(x @ w) ** 3).sum()

    each = jg.vmap(jg.grad(loss), in_dims=(None, 0))
    return [each(w, x), jg.jit(each)(w, x), jg.hessian(loss, argnums=1)(w, x[0]), jg.jvp(lambda x: loss(w, x), (x,), (x,))]


@program
def dtypes_together(place: str) -> Any:
    a, b, u = jg.arange(5, device=place), jg.arange(5, dtype=jg.float16, device=place), jg.arange(5, dtype=jg.uint8, device=place)
    c = a > 2
    return [a + b, a / 2, a // 2, a % 3, a**2, c & ~c, c + a, u - 1, u * 200, a << 1, a.clamp(1, 3), (b * 1000).sum(), u.sum(),
            c.any(), a.prod(), a.float().mean(), jg.where(c, a, b), a.to(jg.float16), -a, ~a]  # fmt: skip


@program
def empty_tensors(place: str) -> Any:
    x, z = jg.zeros((0, 3), device=place), jg.tensor(2.5, device=place)
    return [x.sum(), x.sum(0), jg.cat([x, jg.ones((1, 3), device=place)]), x @ jg.ones((3, 2), device=place), z * 2,
            z.reshape(1, 1), x.T, jg.softmax(x, 1)]  # fmt: skip


@program
def checkpoints_and_loops(place: str) -> Any:
    x = drawn(4, place=place).requires_grad_()
    checkpoint(lambda t: jg.sin(t) * t, x).sum().backward()
    start, xs = jg.tensor(1.0, device=place), jg.arange(5.0, device=place)
    doubled = lax.while_loop(lambda v: v.sum() < 100, lambda v: v * 2, xs)
    return [x.grad, lax.scan(lambda c, x: (c + x, c * x), start, xs), doubled]


@program
def branches_by_values(place: str) -> Any:
    @jg.jit
    def halved(x: Any) -> Any:
        count = 0
        while x.abs().max() > 1 and count < 10:
            x, count = x / 2, count + 1
        return x, count

    return [halved(jg.tensor(x, device=place)) for x in ([3.0, 9.0], [0.3, 0.9], [30.0, 9.0])]


@program
def gradients_over_several_calls(place: str) -> Any:
    model, x = nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3), nn.Linear(3, 1)).to(place), drawn(6, 3, place=place)
    model[0].requires_grad_(False)
    optimizer = optim.RMSprop([{"params": model[1].parameters(), "lr": 0.1}, {"params": model[2].parameters()}], lr=0.01)

    @jg.jit
    def part(x: Any) -> Any:
        loss = model(x).pow(2).mean() / 2
        loss.backward()
        return loss

    losses = []
    for _ in range(2):
        losses += [part(x[:3]), part(x[3:])]
        optimizer.step()
        optimizer.zero_grad()
        optimizer.param_groups[0]["lr"] = 0.5
    return losses, list(model.parameters()), model[0].weight.grad is None


@program
def matrices(place: str) -> Any:
    a = drawn(3, 3, place=place) + 3 * jg.eye(3, device=place)
    linalg = jg.linalg
    return [linalg.solve(a, a[:, :2]), linalg.inv(a), linalg.det(a), linalg.slogdet(a), linalg.cholesky(a @ a.T),
            abs(linalg.qr(a)[1]), linalg.svd(a)[1], linalg.norm(a), jg.einsum("ij,kj->ik", a, a)]  # fmt: skip


@program
def sorts_and_counts(place: str) -> Any:
    x = drawn(3, 7, place=place)
    return [jg.sort(x, axis=1), jg.topk(x, 3), jg.argsort(x, 1), jg.unique(jg.round(x)), jg.cumsum(x, 1), jg.flip(x, (0,)),
            jg.roll(x, 2, 1), jg.median(x), jg.bincount(jg.tensor([1, 2, 2], device=place)), jg.logsumexp(x, 1), jg.diff(x),
            jg.searchsorted(jg.arange(5.0, device=place), x), F.pad(x, (1, 2), value=3.0), jg.nan_to_num(x / 0)]  # fmt: skip


def plain(result: Any) -> list[Any]:
    """Results as arrays on the host, and what is no tensor as it is."""
    return [x.detach().cpu().numpy() if isinstance(x, jg.Tensor) else x for x in leaves(result)]


@pytest.mark.filterwarnings("ignore::jitgrad.core.errors.RetraceWarning")
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, cuda: Any) -> None:
    jg.manual_seed(0)
    expected = plain(PROGRAMS[name]("cpu"))
    jg.manual_seed(0)
    found = plain(PROGRAMS[name]("cuda"))

    assert len(found) == len(expected)
    for x, y in zip(found, expected, strict=True):
        assert type(x) is type(y)
        if isinstance(y, np.ndarray) and y.dtype.kind in "fc":
            assert x.dtype == y.dtype
            np.testing.assert_allclose(x, y, rtol=2e-5, atol=2e-6)
        elif isinstance(y, float):
            assert x == pytest.approx(y, rel=1e-5)
        else:
            np.testing.assert_array_equal(x, y)


def test_files_do_not_say_where_tensors_were(cuda: Any, tmp_path: Path) -> None:
    x = drawn(3, 4, place="cuda")
    for name in ("state", "state.safetensors"):
        jg.save({"x": x, "turned": x.T}, tmp_path / name)
        for place in ("cpu", "cuda"):
            state = jg.load(tmp_path / name, device=place)
            assert [v.device for v in state.values()] == [place] * 2
            np.testing.assert_array_equal(state["x"].cpu().numpy(), x.cpu().numpy())
            np.testing.assert_array_equal(state["turned"].cpu().numpy(), x.cpu().numpy().T)
    model = nn.Linear(4, 3)
    model.load_state_dict({"weight": x, "bias": x[:, 0]})
    assert model.weight.device == "cpu"


def transformer_steps(place: str, dtype: Any, optimizer_of: Callable[..., Any], gradients: dict[str, Any]) -> dict[str, Any]:
    """Parameters after steps of a transformer layer; the first gradients come into ``gradients``."""
    jg.manual_seed(0)
    model = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True).to(dtype).to(place)
    optimizer, x = optimizer_of(model.parameters()), drawn(2, 7, 16, place=place).to(dtype)

    @jg.jit
    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = (model(x) ** 3).mean()
        loss.backward()
        optimizer.step()
        return loss

    for k in range(3):
        step(x)
        if not k:
            gradients.update({name: p.grad.cpu().numpy() for name, p in model.named_parameters()})
    return {name: p.detach().cpu().numpy() for name, p in model.named_parameters()}


def test_a_transformers_gradients_are_as_exact_as_on_the_host(cuda: Any) -> None:
    """Its steps of Adam differ in one place: the gradient of the keys' bias is 0 but for rounding, by whose size Adam divides."""
    truth: dict[str, Any] = {}
    here: dict[str, Any] = {}
    there: dict[str, Any] = {}

    def adam(parameters: Any) -> Any:
        return optim.Adam(parameters, lr=1e-2)

    exact = transformer_steps("cpu", jg.float64, adam, truth)
    on_host, on_device = (transformer_steps(p, jg.float32, adam, g) for p, g in (("cpu", here), ("cuda", there)))

    for name, g in truth.items():
        scale = np.abs(g).max()
        errors = [np.abs(found[name] - g).max() for found in (here, there)]
        assert errors[1] <= 2 * errors[0] + 1e-7 * scale, name
        keys = np.zeros(g.shape, bool)
        keys[16:32] = name == "self_attn.in_proj_bias"
        assert np.abs(g[keys]).max(initial=0.0) < 1e-15
        np.testing.assert_allclose(on_device[name][~keys], on_host[name][~keys], atol=2e-5)
        np.testing.assert_allclose(on_device[name][~keys], exact[name][~keys], atol=2e-5)
