"""Matrix factorisation, sets under masks, and a conditional random field."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class CRF(nn.Module):
    """pytorch-crf"""
    def __init__(self, num_tags, batch_first=False):
        super().__init__()
        self.num_tags, self.batch_first = num_tags, batch_first
        self.start_transitions = nn.Parameter(torch.empty(num_tags))
        self.end_transitions = nn.Parameter(torch.empty(num_tags))
        self.transitions = nn.Parameter(torch.empty(num_tags, num_tags))
        for p in self.parameters():
            nn.init.uniform_(p, -0.1, 0.1)

    def forward(self, emissions, tags, mask):
        emissions, tags, mask = emissions.transpose(0, 1), tags.transpose(0, 1), mask.transpose(0, 1)
        return (self._compute_score(emissions, tags, mask.float()) - self._compute_normalizer(emissions, mask)).mean()

    def _compute_score(self, emissions, tags, mask):
        seq_length, batch_size = tags.shape
        score = self.start_transitions[tags[0]]
        score += emissions[0, torch.arange(batch_size), tags[0]]
        for i in range(1, seq_length):
            score += self.transitions[tags[i - 1], tags[i]] * mask[i]
            score += emissions[i, torch.arange(batch_size), tags[i]] * mask[i]
        seq_ends = mask.long().sum(dim=0) - 1
        last_tags = tags[seq_ends, torch.arange(batch_size)]
        score += self.end_transitions[last_tags]
        return score

    def _compute_normalizer(self, emissions, mask):
        seq_length = emissions.size(0)
        score = self.start_transitions + emissions[0]
        for i in range(1, seq_length):
            next_score = torch.logsumexp(score.unsqueeze(2) + self.transitions + emissions[i].unsqueeze(1), dim=1)
            score = torch.where(mask[i].unsqueeze(1), next_score, score)
        score += self.end_transitions
        return torch.logsumexp(score, dim=1)


class MF(nn.Module):
    def __init__(self, users, items, k):
        super().__init__()
        self.user_emb, self.item_emb = nn.Embedding(users, k), nn.Embedding(items, k)
        self.user_bias, self.item_bias = nn.Embedding(users, 1), nn.Embedding(items, 1)
        self.user_emb.weight.data.uniform_(0, 0.05)
        self.item_emb.weight.data.uniform_(0, 0.05)

    def forward(self, u, v):
        return (self.user_emb(u) * self.item_emb(v)).sum(1) + self.user_bias(u).squeeze() + self.item_bias(v).squeeze()


class DeepSets(nn.Module):
    def __init__(self):
        super().__init__()
        self.phi = nn.Sequential(nn.Linear(3, 16), nn.ELU(inplace=True), nn.Linear(16, 8))
        self.rho = nn.Sequential(nn.Linear(8, 8), nn.ELU(inplace=True), nn.Linear(8, 1))
        self.beta = nn.Parameter(torch.tensor(1.0))

    def forward(self, x, mask):
        h = self.phi(x) * mask.unsqueeze(-1)
        pooled = h.sum(1) / mask.sum(1, keepdim=True).clamp(min=1)
        att = torch.softmax(self.beta * torch.bmm(pooled.unsqueeze(1), h.permute(0, 2, 1)), dim=-1)
        return self.rho(torch.bmm(att, h).squeeze(1)).squeeze(-1)


def main(fill, compiled):
    rng, out = np.random.default_rng(0), []
    f = lambda *s: torch.from_numpy(rng.normal(size=s).astype(np.float32))
    n = lambda hi, *s: torch.from_numpy(rng.integers(0, hi, s))

    models = [(fill(MF(10, 12, 4)), lambda m: F.mse_loss(m(us, vs), rs)),
              (fill(DeepSets()), lambda m: F.mse_loss(m(sx, sm), sy)),
              (fill(CRF(4)), lambda m: -m(em, tags, msk))]
    us, vs, rs = n(10, 16), n(12, 16), f(16)
    sx, sm, sy = f(6, 5, 3), (f(6, 5) > 0).float(), f(6)
    em, tags = f(3, 6, 4), n(4, 3, 6)
    msk = torch.tensor([[1] * 6, [1] * 4 + [0] * 2, [1] * 5 + [0]], dtype=torch.bool)
    for model, loss_fn in models:
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)

        @compiled
        def train():
            model.train()
            optimizer.zero_grad()
            loss = loss_fn(model)
            loss.backward()
            optimizer.step()
            return loss
        out += [train().item() for _ in range(5)]
    return out
