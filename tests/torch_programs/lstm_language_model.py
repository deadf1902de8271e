"""A language model of random text: embedding, LSTM of two layers, clipped gradients, states carried on."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils import clip_grad_norm_


class LanguageModel(nn.Module):
    def __init__(self, vocabulary: int, width: int, hidden: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, hidden, num_layers=2, batch_first=True)
        self.decoder = nn.Linear(hidden, vocabulary)

    def forward(self, tokens, state):
        x, state = self.lstm(self.embedding(tokens), state)
        return self.decoder(x), state

    def init_state(self, batch: int):
        weight = next(self.parameters())
        return weight.new_zeros(2, batch, self.lstm.hidden_size), weight.new_zeros(2, batch, self.lstm.hidden_size)


def main(fill, compiled):
    text = torch.tensor(np.random.default_rng(1).integers(0, 11, (4, 26)), dtype=torch.long)
    model = LanguageModel(11, 6, 8)
    fill(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)

    def step(tokens, targets, h, c):
        optimizer.zero_grad(set_to_none=True)
        logits, (h, c) = model(tokens, (h, c))
        loss = F.cross_entropy(logits.reshape(-1, logits.size(-1)), targets.reshape(-1))
        loss.backward()
        norm = clip_grad_norm_(model.parameters(), max_norm=0.5)
        optimizer.step()
        return loss.detach(), norm, h.detach(), c.detach()

    step = compiled(step)
    numbers = []
    for _ in range(3):
        h, c = model.init_state(text.size(0))
        for start in range(0, 25, 5):
            tokens = text[:, start : start + 5].contiguous()
            targets = text[:, start + 1 : start + 6].contiguous()
            loss, norm, h, c = step(tokens, targets, h, c)
            numbers += [loss.item(), norm.item()]
    with torch.no_grad():
        logits, _ = model(text[:, :6], model.init_state(4))
        best = torch.topk(F.softmax(logits[:, -1], dim=-1), 3, dim=-1)
    return [*numbers, *best.values.flatten().tolist(), *best.indices.float().flatten().tolist()]
