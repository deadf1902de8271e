"""A Wasserstein GAN with a gradient penalty: gradients of gradients in one of two alternating steps."""

import numpy as np
import torch
from torch import nn, optim, autograd


def mlp(i, o):
    return nn.Sequential(nn.Linear(i, 12), nn.LeakyReLU(0.2), nn.Linear(12, 12), nn.LeakyReLU(0.2), nn.Linear(12, o))


def main(fill, compiled):
    rng = np.random.default_rng(5)
    G, D = mlp(3, 2), mlp(2, 1)
    fill(G)
    fill(D)
    og = optim.Adam(G.parameters(), lr=1e-3, betas=(0.0, 0.9))
    od = optim.Adam(D.parameters(), lr=1e-3, betas=(0.0, 0.9))

    @compiled
    def d_step(real, z, eps):
        fake = G(z).detach()
        mix = (eps * real + (1 - eps) * fake).requires_grad_(True)
        out = D(mix)
        (grad,) = autograd.grad(outputs=out, inputs=mix, grad_outputs=torch.ones_like(out), create_graph=True, retain_graph=True)
        penalty = ((grad.norm(2, dim=1) - 1) ** 2).mean()
        loss = D(fake).mean() - D(real).mean() + 10 * penalty
        od.zero_grad()
        loss.backward()
        od.step()
        return loss, penalty

    @compiled
    def g_step(z):
        loss = -D(G(z)).mean()
        og.zero_grad()
        loss.backward()
        og.step()
        return loss

    def normal(*shape):
        return torch.tensor(rng.normal(size=shape), dtype=torch.float32)

    out = []
    for _ in range(4):
        eps = torch.tensor(rng.random((8, 1)), dtype=torch.float32)
        out += [v.item() for v in d_step(normal(8, 2), normal(8, 3), eps)]
        out.append(g_step(normal(8, 3)).item())
    return out
