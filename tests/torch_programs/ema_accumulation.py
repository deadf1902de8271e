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


def schedule_of(optimizer):
    warm = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=2)
    return torch.optim.lr_scheduler.SequentialLR(
        optimizer, [warm, torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 6)], [2]
    )


def steps(model, average, norms, batches=2):
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-2)
    schedule = schedule_of(optimizer)

    def micro(x, y, last):
        loss = F.huber_loss(model(x).squeeze(-1), y) / batches
        loss.backward()
        if last:
            nn.utils.clip_grad_value_(model.parameters(), 0.5)
            norms.append(nn.utils.clip_grad_norm_(model.parameters(), 0.1))
            optimizer.step()
            optimizer.zero_grad()
            average.update()
            schedule.step()
        return loss.detach() * batches

    @torch.no_grad()
    def validate(x):
        model.eval()
        mean = model(x).mean()
        model.train()
        return mean

    return micro, validate, optimizer


def main(fill, compiled):
    model = fill(nn.Sequential(nn.Linear(4, 8), nn.SiLU(), nn.LayerNorm(8), nn.Linear(8, 1)))
    average, norms, out = EMA(model, 0.9), [], []
    micro, validate, optimizer = steps(model, average, norms)
    micro, validate = compiled(micro), compiled(validate)
    for k in range(8):
        out.append(micro(normal(4, 4, seed=k), normal(4, seed=k + 3), k % 2 == 1).item())
        if k % 3 == 2:
            out.append(validate(normal(4, 4)).item())
            average.apply_shadow()
            out.append(validate(normal(4, 4)).item())
            average.restore()
            out.append(validate(normal(4, 4)).item())
        if k == 5:
            model[0].weight.requires_grad_(False)
    total = sum(v.sum() for v in average.shadow.values())
    return out + [g.item() for g in norms] + [optimizer.param_groups[0]["lr"], average.updates, float(total)]
