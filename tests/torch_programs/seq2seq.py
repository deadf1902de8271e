"""A bidirectional GRU encoder and an LSTM decoder with additive attention over padded sequences."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embedding = nn.Embedding(vocab, dim, padding_idx=0)
        self.gru = nn.GRU(dim, dim, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(2 * dim, dim)

    def forward(self, x):
        out, h = self.gru(self.embedding(x))
        return self.fc(out), torch.tanh(self.fc(torch.cat((h[-2], h[-1]), dim=1)))


class Attention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.Wa, self.Ua, self.Va = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, 1)

    def forward(self, query, keys, mask):
        scores = self.Va(torch.tanh(self.Wa(query).unsqueeze(1) + self.Ua(keys))).squeeze(2)
        weights = F.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)
        return torch.bmm(weights.unsqueeze(1), keys).squeeze(1), weights


class Decoder(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embedding = nn.Embedding(vocab, dim)
        self.attention = Attention(dim)
        self.cell = nn.LSTMCell(2 * dim, dim)
        self.out = nn.Linear(dim, vocab)

    def forward(self, enc, h, target, mask):
        c = torch.zeros_like(h)
        token = torch.ones(enc.size(0), dtype=torch.long)
        outputs = []
        for t in range(target.size(1)):
            ctx, _ = self.attention(h, enc, mask)
            h, c = self.cell(torch.cat((self.embedding(token), ctx), dim=-1), (h, c))
            outputs.append(self.out(h))
            token = target[:, t]
        return torch.stack(outputs, dim=1)


def main(fill, compiled):
    rng = np.random.default_rng(8)
    enc, dec = Encoder(11, 6), Decoder(11, 6)
    fill(enc)
    fill(dec)
    params = list(enc.parameters()) + list(dec.parameters())
    opt = torch.optim.Adam(params, lr=5e-3)
    src, tgt = torch.tensor(rng.integers(1, 11, (4, 6))), torch.tensor(rng.integers(1, 11, (4, 5)))
    src[1, 4:] = 0
    tgt[2, 3:] = 0

    @compiled
    def step(src, tgt):
        opt.zero_grad()
        keys, h = enc(src)
        logits = dec(keys, h, tgt, src != 0)
        loss = F.cross_entropy(logits.reshape(-1, logits.size(-1)), tgt.reshape(-1), ignore_index=0)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(params, max_norm=0.5)
        opt.step()
        return loss, norm

    return [float(v) for _ in range(4) for v in step(src, tgt)]
