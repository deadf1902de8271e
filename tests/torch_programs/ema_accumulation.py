"""Gradients accumulated over two batches, clipped twice; a schedule with a warm-up; averages that are swapped in."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def rng(k):
    return np.random.default_rng(k)


def normal(*shape, seed=0):
    return torch.tensor(rng(seed).normal(size=shape).astype("f4"))


class EMA:
    def __init__(self, model, decay):
        self.model, self.decay, self.shadow, self.backup, self.updates = model, decay, {}, {}, 0
        self.register()

    def register(self):
        for n, p in self.model.named_parameters():
            if p.requires_grad:
                self.shadow[n] = p.data.clone()

    def update(self):
        self.updates += 1
        d = min(self.decay, (1 + self.updates) / (10 + self.updates))
        for n, p in self.model.named_parameters():
            if p.requires_grad:
                assert n in self.shadow
                self.shadow[n] = ((1.0 - d) * p.data + d * self.shadow[n]).clone()

    def apply_shadow(self):
        for n, p in self.model.named_parameters():
            if p.requires_grad:
                self.backup[n] = p.data
                p.data = self.shadow[n]

    def restore(self):
        for n, p in self.model.named_parameters():
            if p.requires_grad:
                p.data = self.backup[n]
        self.backup = {}


def main(fill, compiled):
    m = fill(nn.Sequential(nn.Linear(4, 8), nn.SiLU(), nn.LayerNorm(8), nn.Linear(8, 1)))
    opt = torch.optim.AdamW(m.parameters(), lr=2e-2)
    e = EMA(m, 0.9)
    acc = 2
    log = []
    sch = torch.optim.lr_scheduler.SequentialLR(
        opt,
        [
            torch.optim.lr_scheduler.LinearLR(opt, 0.1, total_iters=2),
            torch.optim.lr_scheduler.CosineAnnealingLR(opt, 6),
        ],
        [2],
    )

    def micro(x, y, last):
        loss = F.huber_loss(m(x).squeeze(-1), y) / acc
        loss.backward()
        if last:
            nn.utils.clip_grad_value_(m.parameters(), 0.5)
            g = nn.utils.clip_grad_norm_(m.parameters(), 0.1)
            opt.step()
            opt.zero_grad()
            e.update()
            sch.step()
            log.append(g)
        return loss.detach() * acc

    @torch.no_grad()
    def val(x):
        m.eval()
        r = m(x).mean()
        m.train()
        return r

    micro, val = compiled(micro), compiled(val)
    out = []
    for k in range(8):
        out.append(micro(normal(4, 4, seed=k), normal(4, seed=k + 3), (k + 1) % acc == 0).item())
        if k % 3 == 2:
            out.append(val(normal(4, 4)).item())
            e.apply_shadow()
            out.append(val(normal(4, 4)).item())
            e.restore()
            out.append(val(normal(4, 4)).item())
        if k == 5:
            m[0].weight.requires_grad_(False)
    return (
        out
        + [g.item() for g in log]
        + [opt.param_groups[0]["lr"], e.updates, float(sum(v.sum() for v in e.shadow.values()))]
    )
