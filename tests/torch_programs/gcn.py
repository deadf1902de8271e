"""Graph convolution and attention over edges: sums, degrees and softmax at indices, with a mask of training nodes."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class GCNConv(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.lin = nn.Linear(cin, cout, bias=False)
        self.bias = nn.Parameter(torch.zeros(cout))

    def forward(self, x, edge_index):
        row, col = edge_index
        n = x.size(0)
        deg = torch.zeros(n, dtype=x.dtype).scatter_add_(0, row, torch.ones(row.size(0), dtype=x.dtype))
        dinv = deg.pow(-0.5)
        dinv = dinv.masked_fill(dinv == float("inf"), 0.0)
        norm = dinv[row] * dinv[col]
        msg = self.lin(x)[col] * norm.unsqueeze(-1)
        out = torch.zeros_like(self.lin(x)).index_add_(0, row, msg)
        return out + self.bias


class GATConv(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.lin = nn.Linear(cin, cout, bias=False)
        self.a = nn.Parameter(torch.empty(2 * cout))
        nn.init.normal_(self.a, std=0.1)

    def forward(self, x, edge_index):
        row, col = edge_index
        h = self.lin(x)
        e = F.leaky_relu((torch.cat([h[row], h[col]], dim=-1) * self.a).sum(-1), 0.2)
        m = torch.full((x.size(0),), -1e9).scatter_reduce(0, row, e, "amax")
        p = torch.exp(e - m[row].detach())
        z = torch.zeros(x.size(0)).index_add(0, row, p)
        alpha = p / (z[row] + 1e-16)
        return torch.zeros(x.size(0), h.size(1)).index_add(0, row, alpha[:, None] * h[col])


def main(fill, compiled):
    rng = np.random.default_rng(6)
    n = 12
    x = torch.tensor(rng.normal(size=(n, 5)), dtype=torch.float32)
    edges = torch.tensor(rng.integers(0, n, (2, 40)))
    y = torch.tensor(rng.integers(0, 3, n))
    train = torch.tensor(rng.random(n) > 0.4)
    m1, m2 = GCNConv(5, 8), GATConv(8, 3)
    fill(m1)
    fill(m2)
    opt = torch.optim.Adam([*m1.parameters(), *m2.parameters()], lr=1e-2, weight_decay=5e-4)

    @compiled
    def step(x, edges, y, train):
        h = F.dropout(F.relu(m1(x, edges)), p=0.0, training=True)
        logp = F.log_softmax(m2(h, edges), dim=1)
        nll = F.nll_loss(logp, y, reduction="none")
        loss = (nll * train).sum() / train.sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
        correct = (logp.argmax(dim=1).eq(y) & train).sum()
        return loss, correct

    return [float(v) for _ in range(5) for v in step(x, edges, y, train)]
