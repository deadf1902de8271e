"""The forward algorithm of CTC in the log domain, by hand, trained and compared with the loss of the library."""

import torch
import torch.nn as nn
import torch.nn.functional as F

BLANK = 0


def forward_algorithm(log_probs, targets):
    """log_probs [T, C], targets [L]: minus the logarithm of the probability of the labels."""
    T, C = log_probs.shape
    L = targets.shape[0]
    extended = torch.full((2 * L + 1,), BLANK, dtype=torch.long)
    extended[1::2] = targets
    S = extended.shape[0]
    skip = torch.zeros(S, dtype=torch.bool)
    skip[2:] = (extended[2:] != BLANK) & (extended[2:] != extended[:-2])
    neg_inf = torch.tensor(-1e9)
    alpha = torch.full((S,), -1e9)
    alpha[0] = log_probs[0, BLANK]
    alpha[1] = log_probs[0, extended[1]]
    for t in range(1, T):
        one = torch.cat([neg_inf[None], alpha[:-1]])
        two = torch.cat([neg_inf.expand(2), alpha[:-2]])
        two = torch.where(skip, two, neg_inf)
        alpha = torch.logsumexp(torch.stack([alpha, one, two]), dim=0) + log_probs[t].gather(0, extended)
    return -torch.logsumexp(alpha[-2:], dim=0)


class Recogniser(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(4, 12, 3, padding=1)
        self.rnn = nn.GRU(12, 10, batch_first=True, bidirectional=True)
        self.out = nn.Linear(20, 6)

    def forward(self, x):
        h = F.relu(self.conv(x.transpose(1, 2))).transpose(1, 2)
        h, _ = self.rnn(h)
        return F.log_softmax(self.out(h), dim=-1)


def main(fill, compile):
    model = fill(Recogniser())
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
    x = torch.sin(torch.arange(2 * 8 * 4).float().view(2, 8, 4))
    targets = torch.tensor([[1, 2, 2], [5, 3, 4]])

    @compile
    def step(x, targets):
        optimizer.zero_grad()
        log_probs = model(x)
        loss = torch.stack([forward_algorithm(lp, t) for lp, t in zip(log_probs, targets)]).mean()
        loss.backward()
        optimizer.step()
        return loss, log_probs.detach()

    losses = []
    for _ in range(6):
        loss, log_probs = step(x, targets)
        losses.append(loss.item())
    lengths = torch.tensor([8, 8]), torch.tensor([3, 3])
    library = F.ctc_loss(log_probs.transpose(0, 1), targets, *lengths, reduction="none").mean()
    best = log_probs.argmax(-1)
    decoded = [[int(k) for k in torch.unique_consecutive(row) if k != BLANK] for row in best]
    return losses + [library.item()] + [float(len(d)) for d in decoded]
