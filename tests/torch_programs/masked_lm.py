"""A masked language model, whose loss and metrics are of the masked positions alone, chosen by masks as indices."""

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, MASK, PAD = 13, 12, 0


def mask_tokens(inputs, k):
    labels = inputs.clone()
    special = labels.eq(PAD)
    chosen = ((torch.arange(inputs.numel()).view_as(inputs) * 5 + k) % 7 < 2) & ~special
    labels[~chosen] = -100
    replaced = chosen & ((torch.arange(inputs.numel()).view_as(inputs) + k) % 5 != 0)
    inputs = inputs.clone()
    inputs[replaced] = MASK
    return inputs, labels, chosen


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, 16, padding_idx=PAD)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(16, VOCAB)

    def forward(self, ids):
        return self.head(self.encoder(self.embed(ids), src_key_padding_mask=ids.eq(PAD)))


def main(fill, compile):
    model = fill(Model())
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

    @compile
    def step(inputs, labels, chosen):
        optimizer.zero_grad()
        logits = model(inputs)
        loss = F.cross_entropy(logits[chosen], labels[chosen])
        hits = logits[chosen].argmax(-1).eq(labels[chosen]).float().mean()
        confidence = logits.softmax(-1).max(-1).values
        confidence[~chosen] *= 0.0
        spread = (logits[chosen] - logits[chosen].mean(0)).pow(2).mean()
        (loss + 0.01 * spread).backward()
        optimizer.step()
        return loss, hits, confidence.sum() / chosen.sum()

    tokens = (torch.arange(40).view(4, 10) * 7 % 11) + 1
    tokens[1, 7:] = PAD
    tokens[3, 9:] = PAD
    out = []
    for k in range(12):
        inputs, labels, chosen = mask_tokens(tokens, k % 3)
        out += [x.item() for x in step(inputs, labels, chosen)]
    return out
