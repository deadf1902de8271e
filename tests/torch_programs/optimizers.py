"""One regression with each optimizer, with weight decay by hand, limits on gradients and restored states."""

import copy
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils import clip_grad_value_, parameters_to_vector, vector_to_parameters

OPTIMIZERS = [
    lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=0.01, dampening=0.1),
    lambda p: torch.optim.Adagrad(p, lr=0.1),
    lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.5),
    lambda p: torch.optim.Adamax(p, lr=0.01),
    lambda p: torch.optim.AdamW(p, lr=0.01, amsgrad=True),
]


def main(fill, compiled):
    rng = np.random.default_rng(0)
    inputs = torch.tensor(rng.normal(size=(12, 3)), dtype=torch.float32)
    targets = (inputs**2).sum(1, keepdim=True)
    out = []
    for make in OPTIMIZERS:
        model = nn.Sequential(nn.Linear(3, 5), nn.ELU(), nn.Linear(5, 1))
        fill(model)
        optimizer = make(model.parameters())

        def step(x, y):
            optimizer.zero_grad(set_to_none=False)
            loss = F.huber_loss(model(x), y, delta=0.5) + 1e-3 * sum(p.norm(2) for p in model.parameters())
            loss.backward()
            clip_grad_value_(model.parameters(), 0.05)
            optimizer.step()
            with torch.no_grad():
                for p in model.parameters():
                    p.mul_(1 - 1e-3)
            return loss

        step = compiled(step)
        out += [step(inputs, targets).item() for _ in range(4)]
        vector = parameters_to_vector(model.parameters())
        vector_to_parameters(vector * 0.5, model.parameters())
        out += [vector.sum().item(), step(inputs, targets).item()]
        optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        out.append(step(inputs, targets).item())
    return out
