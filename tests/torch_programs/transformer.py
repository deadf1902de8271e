"""A small causal transformer with positions in a buffer, groups of parameters and a one-cycle schedule."""

import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class PositionalEncoding(nn.Module):
    def __init__(self, width: int, longest: int = 50) -> None:
        super().__init__()
        position = torch.arange(longest).unsqueeze(1)
        rate = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
        table = torch.zeros(longest, width)
        table[:, 0::2] = torch.sin(position * rate)
        table[:, 1::2] = torch.cos(position * rate)
        self.register_buffer("table", table.unsqueeze(0))

    def forward(self, x):
        return x + self.table[:, : x.size(1)]


class Model(nn.Module):
    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.positions = PositionalEncoding(width)
        layer = nn.TransformerEncoderLayer(
            d_model=width, nhead=2, dim_feedforward=24, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, num_layers=1, norm=nn.LayerNorm(width), enable_nested_tensor=False)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens, mask):
        x = self.embedding(tokens) * math.sqrt(self.embedding.embedding_dim)
        return self.head(self.encoder(self.positions(x), mask))


def main(fill, compiled):
    tokens = torch.tensor(np.random.default_rng(2).integers(0, 9, (6, 11)), dtype=torch.int64)
    model = Model(9, 12)
    fill(model)
    decayed = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=3e-3, betas=(0.9, 0.95), fused=False)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.01, total_steps=12, cycle_momentum=False)
    mask = torch.triu(torch.full((10, 10), float("-inf")), diagonal=1)

    def step(x, y):
        optimizer.zero_grad()
        logits = model(x, mask)
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), y.view(-1), ignore_index=0)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    step = compiled(step)
    numbers = []
    for _ in range(11):
        numbers.append(float(step(tokens[:, :-1], tokens[:, 1:].contiguous())))
        numbers.append(scheduler.get_last_lr()[0])
        scheduler.step()
    return numbers
