"""A differential equation by the midpoint rule, with a gradient by a second run backwards."""

import numpy as np
import torch
from torch import nn


def rng(k):
    return np.random.default_rng(k)


def normal(*shape, seed=0):
    return torch.tensor(rng(seed).normal(size=shape).astype("f4"))


class OdeFunc(nn.Module):
    def __init__(s):
        super().__init__()
        s.net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))
        s.nfe = 0

    def forward(s, t, y):
        s.nfe += 1
        return s.net(y**3) * torch.cos(t)


class OdeAdjoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, func, y0, t, *params):
        with torch.no_grad():
            ys = [y0]
            for i in range(len(t) - 1):
                h = t[i + 1] - t[i]
                y = ys[-1]
                k1 = func(t[i], y)
                k2 = func(t[i] + h / 2, y + h / 2 * k1)
                ys.append(y + h * k2)
            ys = torch.stack(ys)
        ctx.func = func
        ctx.save_for_backward(t, ys, *params)
        return ys

    @staticmethod
    def backward(ctx, g):
        t, ys, *params = ctx.saved_tensors
        a = g[-1]
        gp = [torch.zeros_like(p) for p in params]
        for i in range(len(t) - 1, 0, -1):
            with torch.enable_grad():
                y = ys[i - 1].detach().requires_grad_(True)
                h = t[i] - t[i - 1]
                k1 = ctx.func(t[i - 1], y)
                yn = y + h * ctx.func(t[i - 1] + h / 2, y + h / 2 * k1)
                grads = torch.autograd.grad(yn, [y, *params], a, allow_unused=True)
            a = grads[0] + g[i - 1]
            gp = [b + c if c is not None else b for b, c in zip(gp, grads[1:])]
        return (None, a, None, *gp)


def main(fill, compiled):
    f = fill(OdeFunc())
    opt = torch.optim.RMSprop(f.parameters(), lr=1e-2)

    def step(y0, t, target):
        opt.zero_grad()
        y = OdeAdjoint.apply(f, y0, t, *f.parameters())
        loss = torch.mean(torch.abs(y - target))
        loss.backward()
        opt.step()
        return loss

    step = compiled(step)
    out = []
    for k in range(3):
        t = torch.linspace(0.0, 1.0, 5 if k != 1 else 4)
        out += [step(normal(3, 2, seed=k), t, normal(len(t), 3, 2, seed=k + 7)).item(), f.nfe]
    return out
