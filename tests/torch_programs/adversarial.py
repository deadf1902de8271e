"""Domains told apart through a reversed gradient, quantized features and a linear layer of its own."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def rng(k):
    return np.random.default_rng(k)


def normal(*shape, seed=0):
    return torch.tensor(rng(seed).normal(size=shape).astype("f4"))


class STE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, levels):
        ctx.save_for_backward(x)
        ctx.levels = levels
        return torch.round(x * levels) / levels

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (x.abs() <= 1).to(g.dtype), None


class GradRev(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, lam):
        ctx.lam = lam
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return g.neg() * ctx.lam, None


class MulAdd(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, b=None):
        ctx.save_for_backward(x, w)
        ctx.has = b is not None
        out = x @ w.t()
        return out + b if b is not None else out

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        gx = gw = gb = None
        if ctx.needs_input_grad[0]:
            gx = g @ w
        if ctx.needs_input_grad[1]:
            gw = g.t() @ x
        if ctx.has and ctx.needs_input_grad[2]:
            gb = g.sum(0)
        return gx, gw, gb


class DANN(nn.Module):
    def __init__(s):
        super().__init__()
        s.w = nn.Parameter(torch.zeros(6, 4))
        s.b = nn.Parameter(torch.zeros(6))
        s.cls = nn.Linear(6, 3)
        s.dom = nn.Linear(6, 2)
        s.scale = nn.Parameter(torch.tensor(1.0))

    def forward(s, x, lam):
        h = torch.tanh(MulAdd.apply(x, s.w, s.b)) * s.scale
        h = STE.apply(h, 8)
        return s.cls(h), s.dom(GradRev.apply(h, lam))


def main(fill, compiled):
    m = fill(DANN())
    opt = torch.optim.SGD(m.parameters(), lr=0.1, weight_decay=1e-3)

    def step(x, y, xt, lam):
        opt.zero_grad()
        c, d = m(x, lam)
        _, dt = m(xt, lam)
        loss = (
            F.cross_entropy(c, y)
            + F.cross_entropy(d, torch.zeros(len(x), dtype=torch.long))
            + F.cross_entropy(dt, torch.ones(len(xt)).long())
        )
        loss.backward()
        opt.step()
        return loss, [p.grad.norm() for p in m.parameters()]

    step = compiled(step)
    out = []
    for k in range(6):
        p = k / 6
        lam = 2.0 / (1.0 + np.exp(-10 * p)) - 1
        l, g = step(normal(5, 4, seed=k), torch.tensor(rng(k).integers(0, 3, 5)), normal(5, 4, seed=k + 11), lam)
        out += [l.item(), *[v.item() for v in g]]
    return out
