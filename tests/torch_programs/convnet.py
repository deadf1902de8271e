"""A convolutional network with batch norm and a residual block; its learning rate falls on a plateau."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.optim.lr_scheduler import ReduceLROnPlateau


class Block(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, kernel_size=3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, kernel_size=3, padding="same")

    def forward(self, x):
        y = F.leaky_relu(self.bn1(self.conv1(x)), negative_slope=0.1)
        return F.gelu(x + self.conv2(y))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.SiLU(inplace=True), nn.MaxPool2d(2, stride=2), Block(4)
        )
        self.pool = nn.AdaptiveAvgPool2d((2, 2))
        self.heads = nn.ModuleDict({"digits": nn.Linear(16, 4), "parity": nn.Linear(16, 1)})

    def forward(self, x):
        x = self.pool(self.features(x))
        x = x.view(x.size(0), -1)
        return self.heads["digits"](x), self.heads["parity"](x).squeeze(1)


def main(fill, compiled):
    rng = np.random.default_rng(4)
    images = torch.tensor(rng.normal(size=(24, 1, 8, 8)), dtype=torch.float32)
    digits = torch.tensor(rng.integers(0, 4, 24))
    parity = (digits % 2).float()
    model = Net()
    fill(model)
    optimizer = optim.RMSprop(
        [{"params": model.features.parameters()}, {"params": model.heads.parameters(), "lr": 5e-3}], lr=1e-3, momentum=0.5
    )
    scheduler = ReduceLROnPlateau(optimizer, mode="min", factor=0.5, patience=0, threshold=0.2)

    def step(x, y, odd):
        optimizer.zero_grad()
        scores, logit = model(x)
        loss = F.cross_entropy(scores, y) + 0.5 * F.binary_cross_entropy_with_logits(logit, odd)
        loss.backward()
        optimizer.step()
        return loss, (scores.max(dim=1)[1] == y).sum()

    step = compiled(step)
    numbers = []
    for _ in range(6):
        model.train()
        loss, correct = step(images, digits, parity)
        scheduler.step(loss.detach())
        numbers += [loss.item(), correct.item(), optimizer.param_groups[1]["lr"]]
    model.eval()
    with torch.no_grad():
        scores, logit = model(images)
    return [*numbers, *scores.mean(dim=0).tolist(), logit.std(unbiased=False).item() > 0]
