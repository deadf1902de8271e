"""Double, dueling deep Q-learning with a target network that is copied now and then."""

import copy
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class DuelingDQN(nn.Module):
    def __init__(self, obs, actions):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(obs, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU())
        self.value, self.advantage = nn.Linear(16, 1), nn.Linear(16, actions)

    def forward(self, x):
        h = self.body(x)
        a = self.advantage(h)
        return self.value(h) + a - a.mean(dim=1, keepdim=True)


def main(fill, compiled):
    rng = np.random.default_rng(3)
    policy = DuelingDQN(4, 3)
    fill(policy)
    target = copy.deepcopy(policy)
    for p in target.parameters():
        p.requires_grad_(False)
    target.eval()
    opt = torch.optim.RMSprop(policy.parameters(), lr=1e-3, alpha=0.95, eps=1e-5, centered=True)

    def learn(states, actions, rewards, next_states, dones):
        q = policy(states).gather(1, actions.unsqueeze(1)).squeeze(1)
        with torch.no_grad():
            best = policy(next_states).argmax(dim=1, keepdim=True)
            nq = target(next_states).gather(1, best).squeeze(-1)
            expected = rewards + 0.99 * nq * (1 - dones)
        td = expected - q
        loss = F.smooth_l1_loss(q, expected)
        opt.zero_grad()
        loss.backward()
        for p in policy.parameters():
            p.grad.clamp_(-0.1, 0.1)
        opt.step()
        return loss, td.detach().abs()

    learn = compiled(learn)
    out = []
    for k in range(5):
        batch = (
            torch.tensor(rng.normal(size=(8, 4)), dtype=torch.float32),
            torch.tensor(rng.integers(0, 3, 8)),
            torch.tensor(rng.normal(size=8), dtype=torch.float32),
            torch.tensor(rng.normal(size=(8, 4)), dtype=torch.float32),
            torch.tensor(rng.integers(0, 2, 8), dtype=torch.float32),
        )
        loss, pr = learn(*batch)
        out += [loss.item(), pr.max().item()]
        if k % 2 == 1:
            target.load_state_dict(policy.state_dict())
    return out
