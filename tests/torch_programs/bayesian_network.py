import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Gamma, Laplace, Normal, StudentT, kl_divergence


class BayesLinear(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.mu = nn.Parameter(torch.empty(n_out, n_in))
        self.rho = nn.Parameter(torch.empty(n_out, n_in))
        self.bias = nn.Parameter(torch.zeros(n_out))
        self.register_buffer("prior_scale", torch.tensor(0.5))
        self.reset_parameters()
    def reset_parameters(self):
        nn.init.kaiming_uniform_(self.mu, a=math.sqrt(5))
        nn.init.constant_(self.rho, -3.0)
    @property
    def posterior(self):
        return Normal(self.mu, F.softplus(self.rho))
    def kl(self):
        prior = Normal(torch.zeros_like(self.mu), self.prior_scale)
        return kl_divergence(self.posterior, prior).sum()
    def forward(self, x, eps):
        q = self.posterior
        return F.linear(x, q.loc + q.scale * eps, self.bias)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1, self.l2 = BayesLinear(3, 8), BayesLinear(8, 2)
        self.log_noise = nn.Parameter(torch.zeros(2))
    def forward(self, x, eps):
        h = torch.tanh(self.l1(x, eps[0]))
        mean, raw = self.l2(h, eps[1]).unbind(-1)
        return StudentT(4.0, mean, F.softplus(raw) + 1e-2)
    def kl(self):
        return sum(m.kl() for m in self.modules() if isinstance(m, BayesLinear))


def main(fill, compiled):
    rng = np.random.default_rng(0)
    net = fill(Net())
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    sched = torch.optim.lr_scheduler.StepLR(opt, 2, 0.5)
    x = torch.tensor(rng.normal(size=(24, 3)).astype(np.float32))
    y = torch.tensor(rng.standard_t(4, size=24).astype(np.float32))

    def step(x, y, eps, beta):
        opt.zero_grad()
        likelihood = net(x, eps).log_prob(y).sum()
        hyper = Gamma(2.0, 1.0).log_prob(net.log_noise.exp()).sum() + Laplace(0.0, 1.0).log_prob(net.log_noise).sum()
        elbo = likelihood + hyper - beta * net.kl()
        (-elbo / len(x)).backward()
        opt.step()
        return elbo.detach(), net.kl().detach()

    step = compiled(step)
    out = []
    for epoch in range(6):
        eps = [torch.tensor(rng.normal(size=s).astype(np.float32)) for s in ((8, 3), (2, 8))]
        elbo, kl = step(x, y, eps, min(1.0, (epoch + 1) / 4))
        sched.step()
        out += [-elbo.item() / 24, kl.item() / 24]
    return out
