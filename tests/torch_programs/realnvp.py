import math
import numpy as np
import torch
import torch.nn as nn
from torch import distributions
from torch.nn.parameter import Parameter

class RealNVP(nn.Module):
    def __init__(self, nets, nett, mask):
        super(RealNVP, self).__init__()
        self.mask = nn.Parameter(mask, requires_grad=False)
        self.t = torch.nn.ModuleList([nett() for _ in range(len(mask))])
        self.s = torch.nn.ModuleList([nets() for _ in range(len(mask))])
    def g(self, z):
        x = z
        for i in range(len(self.t)):
            x_ = x*self.mask[i]
            s = self.s[i](x_)*(1 - self.mask[i])
            t = self.t[i](x_)*(1 - self.mask[i])
            x = x_ + (1 - self.mask[i]) * (x * torch.exp(s) + t)
        return x
    def f(self, x):
        log_det_J, z = x.new_zeros(x.shape[0]), x
        for i in reversed(range(len(self.t))):
            z_ = self.mask[i] * z
            s = self.s[i](z_) * (1-self.mask[i])
            t = self.t[i](z_) * (1-self.mask[i])
            z = (1 - self.mask[i]) * (z - t) * torch.exp(-s) + z_
            log_det_J -= s.sum(dim=1)
        return z, log_det_J
    def log_prob(self, x):
        z, logp = self.f(x)
        return -0.5 * (z ** 2).sum(dim=-1) - 0.5 * z.shape[-1] * math.log(2 * math.pi) + logp

def main(fill, compiled):
    rng = np.random.default_rng(0)
    nets = lambda: nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(), nn.Linear(8, 2), nn.Tanh())
    nett = lambda: nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(), nn.Linear(8, 2))
    masks = torch.from_numpy(np.array([[0, 1], [1, 0]] * 2).astype(np.float32))
    flow = RealNVP(nets, nett, masks)
    fill(flow)
    with torch.no_grad():
        flow.mask.copy_(masks)
    optimizer = torch.optim.Adam([p for p in flow.parameters() if p.requires_grad == True], lr=1e-2)
    def step(x):
        loss = -flow.log_prob(x).mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        return loss
    step = compiled(step)
    out = [step(torch.from_numpy(rng.normal(size=(8, 2)).astype(np.float32))).item() for t in range(5)]
    z = flow.f(torch.from_numpy(rng.normal(size=(3, 2)).astype(np.float32)))[0].detach().numpy()
    x = flow.g(torch.from_numpy(z))
    return out + x.flatten().tolist()
