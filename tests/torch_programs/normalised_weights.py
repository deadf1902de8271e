"""A discriminator with spectral and weight normalisation, and weights that are functions of parameters."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrize, spectral_norm
from torch.nn.utils.parametrizations import weight_norm


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).mT

    def right_inverse(self, a):
        return a.triu()


class Cayley(nn.Module):
    def forward(self, x):
        a = x.triu(1)
        a = a - a.mT
        identity = torch.eye(x.size(-1))
        return torch.linalg.solve(identity + a, identity - a)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = spectral_norm(nn.Conv2d(1, 4, 4, 2, 1))
        self.hidden = weight_norm(nn.Linear(16, 6), dim=0)
        self.mixed = nn.utils.weight_norm(nn.Linear(6, 6))
        self.symmetric, self.rotation, self.out = nn.Linear(6, 6), nn.Linear(6, 6, bias=False), nn.Linear(6, 1)
        parametrize.register_parametrization(self.symmetric, "weight", Symmetric())
        parametrize.register_parametrization(self.rotation, "weight", Cayley())

    def forward(self, x):
        h = F.leaky_relu(self.conv(x), 0.1).flatten(1)
        h = self.symmetric(torch.tanh(self.mixed(self.hidden(h))))
        return self.out(self.rotation(h)).view(-1)


def main(fill, compiled):
    rng = np.random.default_rng(0)
    d = fill(Discriminator())
    with torch.no_grad():
        d.conv.weight_u.copy_(F.normalize(torch.ones(4), dim=0))
        d.conv.weight_v.copy_(F.normalize(torch.ones(16), dim=0))
    optimizer = torch.optim.Adam(d.parameters(), lr=2e-3, betas=(0.5, 0.999))

    def step(x, y):
        optimizer.zero_grad()
        with parametrize.cached():
            loss = F.binary_cross_entropy_with_logits(d(x), y) + 0.01 * d.rotation.weight.sum()
        loss.backward()
        optimizer.step()
        return loss

    step = compiled(step)
    losses = []
    for _ in range(6):
        x = torch.tensor(rng.normal(size=(3, 1, 4, 4)).astype("f4"))
        losses.append(step(x, torch.tensor([0.0, 1.0, 1.0])).item())
    product = d.rotation.weight @ d.rotation.weight.T
    nn.utils.remove_spectral_norm(d.conv)
    nn.utils.remove_weight_norm(d.mixed)
    parametrize.remove_parametrizations(d.symmetric, "weight")
    named = {name: p for name, p in d.named_parameters()}
    out = losses + product.flatten().tolist() + [len(named), len(d.state_dict())]
    for name in ("conv.weight", "mixed.weight", "symmetric.weight", "hidden.parametrizations.weight.original0"):
        out += named[name].detach().flatten().tolist()
    return out
