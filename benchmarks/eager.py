"""Times single eager calls beside PyTorch: `python -m benchmarks.eager`, with `--markdown docs/PERFORMANCE.md` as a section.

Each call is one text that both libraries evaluate on equal arrays, first without gradients, then forward and backward. Their
values are compared before anything is timed, as far as the call is determined. The two take turns in one process with one
thread each. A ratio is that of the fastest batches, after so many calls that loops which jitgrad compiles are compiled.
Models and their training steps are those of `benchmarks.eager_models`.
"""

from __future__ import annotations

import datetime
import gc
import math
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import click
import numpy as np

from benchmarks import eager_models, system
from benchmarks.report import geometric, with_section

SIDES = (10, 100, 1000)  # of the square arrays
WARM_UP_CALLS, WARM_UP_SECONDS = 1500, 0.4
BATCH, ROUNDS = 4e-3, 14  # seconds of a batch, and how many there are
TOLERANCE = 2e-3

# ``x y z`` are [n, n], ``v w`` [n], ``i`` [n] integers below n, ``m`` [n, n] booleans; ``lib`` and ``F`` are the library and its
# functional layers. ``z`` is changed in place, and starts as a copy of ``y``. ``p q q2 s h`` are batches, layers and optimizers
# have names as well: see `benchmarks.eager_models`.
CALLS = {
    "arithmetic": """x + y|x * 2.0|x / y|x ** 2|x + v|lib.maximum(x, y)|lib.where(m, x, y)|x > y|lib.clamp(x, 0.3, 0.7)
lib.lerp(x, y, 0.3)|x.double()|x.long()|m.float()|-x|1.0 - x|x == y|m & m|~m|x.masked_fill(m, 0.0)""",
    "functions": """lib.exp(x)|lib.log(x)|lib.sqrt(x)|lib.sin(x)|lib.tanh(x)|lib.sigmoid(x)|lib.erf(x)|lib.lgamma(x)|F.relu(x)
F.gelu(x)|F.silu(x)|F.softplus(x)|F.elu(x)|F.dropout(x, 0.5)
lib.abs(x)|lib.cos(x)|lib.log1p(x)|lib.rsqrt(x)|lib.floor(x)|F.leaky_relu(x)|F.hardtanh(x)|F.mish(x)|F.selu(x)""",
    "reductions": """x.sum()|x.sum(0)|x.sum(1)|x.mean(1)|x.amax(1)|x.argmax(1)|x.var(1, correction=0)|x.prod(1)|x.norm()
lib.cumsum(x, 1)|lib.logsumexp(x, 1)|lib.argsort(x, dim=1, stable=True)|lib.topk(x, 3)[0]|x.mean()|x.std(correction=1)
x.argsort(1)|m.any()|m.all(1)|(x > 2).any()|lib.unique(i)|lib.cumprod(x, 1)|x.argmax()|x.norm(dim=1)
lib.cumsum(x, 0)|x.amin(0)|x.argmin(0)|x.argmax(0)|x.sort(dim=1)[0]|x.max(dim=1)[0]""",
    "rows": """F.softmax(x, -1)|F.log_softmax(x, -1)|F.layer_norm(x, (x.shape[1],), v, w)|F.cross_entropy(x, i)
F.nll_loss(x, i)|F.mse_loss(x, y)|F.huber_loss(x, y)|F.binary_cross_entropy_with_logits(x, y)
F.batch_norm(x, None, None, v, w, True)|F.normalize(x, dim=1)|F.l1_loss(x, y)""",
    "views": """x[2:5]|x[0]|x[:, 1]|x[None]|x.T|x.reshape(-1)|x.view(1, -1)|x.expand(2, *x.shape)|x.detach()|x.unbind(0)[0]
x.unsqueeze(1)
x.chunk(2)[0]|x.chunk(2, 1)[0]|x[..., 1:]|x[::2, 1]|x.permute(1, 0)|x.T.contiguous()|x.diagonal()|[row for row in x[:8]][0]""",
    "joining and lookup": """lib.cat([x, y])|lib.stack([x, y])|x[i]|x[m]|x.gather(1, i[None])|F.embedding(i, x)|F.one_hot(i, 1000)
lib.tril(x)|lib.roll(x, 1, 0)|lib.flip(x, (0,))|F.pad(x, (1, 1))|x.clone()|x[i, i]|lib.cat([x, y], 1)|lib.stack([v, w], 1)
lib.index_select(x, 0, i)|x.tile((2, 1))
lib.triu(x)|lib.scatter(x, 1, i[None], 0.5)|lib.take_along_dim(x, i[None], 1)|lib.meshgrid(v, w, indexing='ij')[0]
x.index_add(0, i, y)|x.index_select(1, i)|x.split(2)[0]|x.flatten()|x.squeeze()|x.movedim(0, 1)""",
    "products": """x @ y|x @ v|lib.outer(v, w)|F.linear(x, y, v)|lib.einsum('ij,ij->i', x, y)|lib.linalg.inv(x + n * e)
lib.dot(v, w)
lib.einsum('ij,jk->ik', x, y)|lib.einsum('ij,kj->ik', x, y)|lib.mv(x, v)|lib.mm(x, y)|lib.addmm(y, x, y)
lib.bmm(x[None], y[None])|x.T @ y|lib.linalg.solve(x + n * e, v)""",
    "changes in place": """z.zero_()|z.add_(y)|z.mul_(1.0)|z.copy_(y)|z[0].fill_(1.0)|z.clamp_(-1, 1)|put(z, 0, v)
put(z, slice(1, 3), 0.0)|put(z, i, y)|put(z, m, 0.0)|put(z, (i, i), v)|z.add_(y, alpha=0.1)|z.mul_(0.9).add_(y, alpha=0.1)
z.addcmul_(x, y, value=0.1)|z.sub_(y)|z.fill_(0.5)|z.lerp_(y, 0.1)|z.masked_fill_(m, 0.0)|z.normal_()|z.uniform_()""",
    "programs": "hundred(x)|lib.tanh(x @ y + v).mean()",
    "values": """x[0, 0].item()|v.tolist()|x.detach().numpy()|lib.tensor(1.5)|lib.tensor([1.0, 2.0, 3.0])|x.sum().item()
bool(m.any())|x.shape[0]""",
    "layers": """linear(p)|layer_norm(p)|mlp(p)|conv1d(q)|conv2d(q2)|cnn(q2)|F.max_pool2d(q2, 2)|F.avg_pool2d(q2, 2)
lstm(s)[0]|gru(s)[0]|attention(s)|encoder(s)|F.scaled_dot_product_attention(h, h, h)""",
    "training": """step_linear()|step_mlp()|step_cnn()|step_lstm()|step_transformer()|sgd10.step()|sgd100.step()
momentum100.step()
adam10.step()|adam100.step()|adamw100.step()|clip(100)|zero_grad(100)""",
    "creation": """lib.zeros(n, n)|lib.ones(n, n)|lib.full((n, n), 1.5)|lib.arange(n)|lib.linspace(0, 1, n)|lib.eye(n)
lib.zeros_like(x)|lib.rand(n, n)|lib.randn(n, n)|lib.randint(0, 10, (n,))|lib.randperm(n)""",
}
RANDOM = re.compile(r"argsort\(1\)|rand|dropout|normal_|uniform_|step")


def hundred(x: Any) -> Any:
    """A hundred ops."""
    for _ in range(50):
        x = x * 0.999 + 0.001
    return x


def put(x: Any, index: Any, value: Any) -> Any:
    """``x[index] = value``, which is no expression."""
    x[index] = value
    return x


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of a call of both libraries; NaN where it is not differentiable."""

    side: int
    forward: tuple[float, float]
    both: tuple[float, float]

    @property
    def ratios(self) -> tuple[float, float]:
        """Time over PyTorch's, without gradients, and forward and backward."""
        return self.forward[0] / self.forward[1], self.both[0] / self.both[1]


class Library:
    """``lib``, jitgrad or torch, with its own copies of the arrays."""

    def __init__(self, lib: Any, arrays: dict[str, Any], side: int) -> None:
        self.lib = lib
        self.names: dict[str, Any] = {"lib": lib, "F": lib.nn.functional, "n": side, "hundred": hundred, "put": put}
        batches = eager_models.inputs(lib, side)
        self.names |= batches | eager_models.layers(lib) | eager_models.training_steps(lib, batches)
        self.names |= eager_models.updates(lib, side)
        self.names.update({name: lib.tensor(x) for name, x in arrays.items()})

    def call(self, text: str) -> Callable[[], Any]:
        function: Callable[[], Any] = eval(f"lambda: {text}", self.names)
        return function

    def recorded(self, text: str) -> Callable[[], Any] | None:
        """The call with gradients of ``x y v w``, forward and backward; None if it has none, or changes ``z``."""
        if "z" in re.findall(r"\w+", text):  # whose history would be that of all calls
            return None
        leaves = [self.names[name].clone().requires_grad_() for name in "xyvw"]
        call = eval(f"lambda: {text}", {**self.names, **dict(zip("xyvw", leaves, strict=True))})
        out = call()
        if not isinstance(out, self.lib.Tensor) or not out.requires_grad:
            return None
        seed = self.lib.ones_like(out)

        def forward_and_backward() -> None:
            call().backward(seed)
            for leaf in leaves:
                leaf.grad = None

        return forward_and_backward


def calls(chosen: str) -> Iterator[tuple[str, str]]:
    """(group, text) of the calls with ``chosen`` in their text."""
    for group, texts in CALLS.items():
        yield from ((group, text) for text in texts.replace("\n", "|").split("|") if chosen in text)


def libraries(side: int) -> tuple[Library, Library]:
    """jitgrad and PyTorch with equal arrays."""
    import torch

    import jitgrad

    rng = np.random.default_rng(side)
    arrays: dict[str, Any] = {name: rng.uniform(0.1, 1.0, (side, side)).astype(np.float32) for name in "xy"}
    arrays |= {name: rng.uniform(0.1, 1.0, side).astype(np.float32) for name in "vw"}
    arrays |= {"i": rng.integers(0, side, side), "m": arrays["x"] > arrays["y"], "e": np.eye(side, dtype=np.float32)}
    return Library(jitgrad, arrays, side), Library(torch, arrays, side)


def check(text: str, outs: Sequence[Any]) -> None:
    """Compare the two values of ``text``.

    Raises:
        ArithmeticError: they differ.
    """
    own, other = (np.asarray(out.detach().numpy() if hasattr(out, "detach") else out) for out in outs)
    if own.dtype == other.dtype == object:  # a call without a result
        return
    if own.shape != other.shape or not (RANDOM.search(text) or np.allclose(own, other, TOLERANCE, TOLERANCE)):
        raise ArithmeticError(f"{text}: jitgrad and torch differ")


def fastest(functions: Sequence[Callable[[], Any]]) -> tuple[float, float]:
    """Seconds of a call of each in its fastest batch."""
    repeats, best = [], [math.inf] * len(functions)
    for function in functions:
        start, count = perf_counter(), 0
        while count < WARM_UP_CALLS and perf_counter() - start < WARM_UP_SECONDS:
            function()
            count += 1
        repeats.append(max(1, round(BATCH * count / (perf_counter() - start))))
    for _ in range(ROUNDS):
        for k in random.sample(range(len(functions)), len(functions)):
            start = perf_counter()
            for _ in range(repeats[k]):
                functions[k]()
            best[k] = min(best[k], (perf_counter() - start) / repeats[k])
    return best[0], best[1]


def measure(text: str, pair: tuple[Library, Library]) -> Timing:
    for library in pair:
        library.names["z"] = library.names["y"].clone()
    forward = [library.call(text) for library in pair]
    check(text, [call() for call in forward])
    both = [recorded for library in pair if (recorded := library.recorded(text)) is not None]
    seconds = fastest(forward), fastest(both) if len(both) == len(pair) else (math.nan, math.nan)
    return Timing(pair[0].names["n"], *seconds)


def section(rows: dict[str, list[Timing]], date: str) -> str:
    """The section of the page."""
    heads = "".join(f" {side} x {side} | f + b |" for side in SIDES)
    lines = [
        f"## Eager calls beside PyTorch, {system.title(system.machine(1))}\n",
        f"Time over that of PyTorch, below 1 jitgrad is faster; float32, one thread each, measured on {date} by",
        "`python -m benchmarks.eager --markdown docs/PERFORMANCE.md`. The two take turns in one process; a ratio is that of the",
        "fastest batches. *f + b* is forward and backward; `hundred(x)` is a hundred multiplications and additions. How eager",
        "calls work is in [eager execution](internals/eager.md).\n",
        f"| call |{heads}",
        "|:--|" + "--:|" * (2 * len(SIDES)),
    ]
    for text, timings in rows.items():
        numbers = [ratio for timing in timings for ratio in timing.ratios]
        lines.append(f"| `{text}` | " + " | ".join("-" if math.isnan(r) else f"{r:.2f}" for r in numbers) + " |")
    columns = zip(*([r for t in timings for r in t.ratios] for timings in rows.values()), strict=True)
    lines.append("| *geometric mean* | " + " | ".join(f"{geometric(column):.2f}" for column in columns) + " |")
    return "\n".join(lines) + "\n"


@click.command(help=__doc__)
@click.argument("chosen", default="")
@click.option("--markdown", "page", type=Path, help="Write the section of this page.")
def main(chosen: str, page: Path | None) -> None:
    """Measure the calls with ``chosen`` in their text."""
    import torch

    from jitgrad.eager.blas import set_blas_threads
    from jitgrad.runtime.executor.thread_pool import set_num_threads

    for limit in (torch.set_num_threads, set_num_threads, set_blas_threads):
        limit(1)
    pairs = [libraries(side) for side in SIDES]
    rows: dict[str, list[Timing]] = {}
    gc.disable()
    for group, text in calls(chosen):
        rows[text] = [measure(text, pair) for pair in pairs]
        gc.collect()
        click.echo(f"{group:20}{text:50}" + "".join(f"{r:8.2f}" for t in rows[text] for r in t.ratios))
    if page is not None:
        new = section(rows, datetime.date.today().isoformat())
        page.write_text(with_section(page.read_text(encoding="utf-8"), new), encoding="utf-8")


if __name__ == "__main__":
    main()
