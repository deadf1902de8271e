"""A classifier of points, trained with momentum and a step schedule."""

import numpy as np
import torch
from torch import nn, optim


class Classifier(nn.Module):
    def __init__(self, features: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(features, hidden)
        self.act = nn.ReLU(inplace=True)
        self.drop = nn.Dropout(p=0.0)
        self.fc2 = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, classes)

    def forward(self, x):
        x = self.act(self.fc1(x))
        x = self.drop(torch.tanh(self.fc2(x)))
        return self.out(x)


def main(fill, compiled):
    device = torch.device("cuda" if torch.cuda.is_available() and False else "cpu")
    rng = np.random.default_rng(0)
    inputs = torch.from_numpy(rng.normal(size=(96, 5))).float().to(device)
    labels = torch.from_numpy(rng.integers(0, 3, 96)).long().to(device)
    model = Classifier(5, 16, 3).to(device)
    fill(model)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.5)

    def step(x, y):
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    step = compiled(step)
    losses = []
    for _ in range(6):
        model.train()
        for x, y in zip(inputs.split(32, dim=0), labels.split(32, dim=0)):
            losses.append(step(x, y).item())
        scheduler.step()
    model.eval()
    with torch.no_grad():
        predicted = model(inputs).argmax(dim=1)
        losses.append((predicted == labels).float().mean().item())
    return losses
