"""Word vectors by skip-gram with negative sampling."""

import torch
import torch.nn as nn
import torch.nn.functional as F

text = "the quick brown fox jumps over the lazy dog while the sly fox watches the quick dog sleep".split()
vocab = sorted(set(text))
word_to_ix = {w: i for i, w in enumerate(vocab)}


class SkipGramNeg(nn.Module):
    def __init__(self, vocab_size, dim, counts):
        super().__init__()
        self.in_embed = nn.Embedding(vocab_size, dim)
        self.out_embed = nn.Embedding(vocab_size, dim)
        self.register_buffer("noise_dist", counts.pow(0.75) / counts.pow(0.75).sum())

    def forward(self, center, context, negatives):
        v = self.in_embed(center)
        u = self.out_embed(context)
        n = self.out_embed(negatives)
        pos = F.logsigmoid((v * u).sum(dim=1))
        neg = F.logsigmoid(torch.bmm(n.neg(), v.unsqueeze(2)).squeeze(2)).sum(1)
        return -(pos + neg).mean()


def pairs(window=2):
    ids = [word_to_ix[w] for w in text]
    out = []
    for i, c in enumerate(ids):
        for j in range(max(0, i - window), min(len(ids), i + window + 1)):
            if i != j:
                out.append((c, ids[j]))
    return torch.tensor(out)


def main(fill, compile):
    counts = torch.zeros(len(vocab)).index_add_(0, torch.tensor([word_to_ix[w] for w in text]), torch.ones(len(text)))
    model = fill(SkipGramNeg(len(vocab), 8, counts))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    data = pairs()

    @compile
    def step(center, context, negatives):
        optimizer.zero_grad()
        loss = model(center, context, negatives)
        loss.backward()
        optimizer.step()
        return loss

    losses = []
    for epoch in range(4):
        for start in range(0, len(data) - 15, 16):
            batch = data[start : start + 16]
            negatives = (torch.arange(16)[:, None] * 7 + torch.arange(5)[None] * 3 + start + epoch) % len(vocab)
            losses.append(step(batch[:, 0], batch[:, 1], negatives).item())
    with torch.no_grad():
        embed = F.normalize(model.in_embed.weight, dim=1)
        nearest = (embed @ embed.t()).fill_diagonal_(-1.0).max(dim=1)
    return losses + nearest.values.tolist()
