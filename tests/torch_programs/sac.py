import copy
from functools import partial

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Independent, Normal, TransformedDistribution
from torch.distributions.transforms import TanhTransform


def mlp(sizes):
    layers = []
    for i in range(len(sizes) - 1):
        layers += [nn.Linear(sizes[i], sizes[i + 1]), nn.ReLU() if i < len(sizes) - 2 else nn.Identity()]
    return nn.Sequential(*layers)


class Actor(nn.Module):
    def __init__(self, obs, act):
        super().__init__()
        self.net = mlp([obs, 16, 2 * act])
    def forward(self, x, noise):
        mu, log_std = self.net(x).chunk(2, dim=-1)
        std = torch.clamp(log_std, -5, 2).exp()
        dist = TransformedDistribution(Independent(Normal(mu, std), 1), [TanhTransform(cache_size=1)])
        action = torch.tanh(mu + std * noise)  # dist.rsample() with given noise
        return action, dist.log_prob(action)


class Critic(nn.Module):
    def __init__(self, obs, act):
        super().__init__()
        self.q1, self.q2 = mlp([obs + act, 16, 1]), mlp([obs + act, 16, 1])
    def forward(self, s, a):
        x = torch.cat([s, a], -1)
        return self.q1(x).squeeze(-1), self.q2(x).squeeze(-1)


class ReplayBuffer:
    def __init__(self, size, obs, act):
        self.s, self.s2 = np.zeros((size, obs), np.float32), np.zeros((size, obs), np.float32)
        self.a, self.r, self.d = np.zeros((size, act), np.float32), np.zeros(size, np.float32), np.zeros(size, np.float32)
        self.ptr, self.size, self.max_size = 0, 0, size
    def store(self, s, a, r, s2, d):
        self.s[self.ptr], self.a[self.ptr], self.r[self.ptr], self.s2[self.ptr], self.d[self.ptr] = s, a, r, s2, d
        self.ptr, self.size = (self.ptr + 1) % self.max_size, min(self.size + 1, self.max_size)
    def sample_batch(self, rng, n):
        idxs = rng.integers(0, self.size, size=n)
        return {k: torch.as_tensor(v[idxs]) for k, v in dict(s=self.s, a=self.a, r=self.r, s2=self.s2, d=self.d).items()}


def update(actor, critic, target, log_alpha, actor_opt, critic_opt, alpha_opt, batch, e1, e2):
    s, a, r, s2, d = batch["s"], batch["a"], batch["r"], batch["s2"], batch["d"]
    alpha = log_alpha.exp().detach()
    with torch.no_grad():
        a2, logp2 = actor(s2, e1)
        backup = r + 0.99 * (1 - d) * (torch.min(*target(s2, a2)) - alpha * logp2)
    q1, q2 = critic(s, a)
    loss_q = F.mse_loss(q1, backup) + F.mse_loss(q2, backup)
    critic_opt.zero_grad()
    loss_q.backward()
    critic_opt.step()
    for p in critic.parameters():
        p.requires_grad = False
    pi, logp = actor(s, e2)
    loss_pi = (alpha * logp - torch.min(*critic(s, pi))).mean()
    actor_opt.zero_grad()
    loss_pi.backward()
    actor_opt.step()
    for p in critic.parameters():
        p.requires_grad = True
    alpha_loss = -(log_alpha * (logp + -2.0).detach()).mean()
    alpha_opt.zero_grad()
    alpha_loss.backward()
    alpha_opt.step()
    with torch.no_grad():
        for p, p_targ in zip(critic.parameters(), target.parameters()):
            p_targ.data.mul_(0.995)
            p_targ.data.add_((1 - 0.995) * p.data)
    return loss_q, loss_pi, alpha_loss


def main(fill, compiled):
    rng = np.random.default_rng(0)
    actor, critic = fill(Actor(3, 2)), fill(Critic(3, 2))
    target = copy.deepcopy(critic)
    for p in target.parameters():
        p.requires_grad = False
    log_alpha = torch.zeros(1, requires_grad=True)
    actor_opt = torch.optim.Adam(actor.parameters(), lr=1e-2)
    critic_opt = torch.optim.Adam(critic.parameters(), lr=1e-2)
    alpha_opt = torch.optim.Adam([log_alpha], lr=1e-2)

    step = compiled(partial(update, actor, critic, target, log_alpha, actor_opt, critic_opt, alpha_opt))
    buffer = ReplayBuffer(20, 3, 2)
    out = []
    for t in range(30):
        buffer.store(rng.normal(size=3), rng.uniform(-1, 1, 2), rng.normal(), rng.normal(size=3), t % 10 == 9)
        if t >= 25:
            noise = [torch.as_tensor(rng.normal(size=(8, 2)).astype(np.float32)) for _ in range(2)]
            out += [x.item() for x in step(buffer.sample_batch(rng, 8), *noise)]
    return out
