"""A class that trains: modes, counters, a schedule, clipping, moving averages and validation within its steps."""

import copy
import enum
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR


class Phase(enum.Enum):
    WARM = "warm"
    MAIN = "main"


@dataclass
class Config:
    hidden: int = 8
    lr: float = 2e-2
    clip: float = 1.0
    smoothing: float = 0.1
    history: list = field(default_factory=list)


class Net(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.first = nn.Linear(5, config.hidden)
        self.norm = nn.BatchNorm1d(config.hidden)
        self.drop = nn.Dropout(0.0)
        self.last = nn.Linear(config.hidden, 3)

    @property
    def size(self):
        return sum(p.numel() for p in self.parameters() if p.requires_grad)

    def forward(self, x):
        return self.last(self.drop(torch.relu(self.norm(self.first(x)))))


class Trainer:
    def __init__(self, fill, compiled, config):
        self.config, self.model = config, Net(config)
        fill(self.model)
        self.average = copy.deepcopy(self.model)
        decay = [p for p in self.model.parameters() if p.ndim > 1]
        others = [p for p in self.model.parameters() if p.ndim <= 1]
        groups = [{"params": decay, "weight_decay": 1e-2}, {"params": others, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=config.lr)
        parts = [LinearLR(self.optimizer, 0.1, total_iters=3), CosineAnnealingLR(self.optimizer, T_max=20)]
        self.schedule = SequentialLR(self.optimizer, parts, milestones=[3])
        self.criterion = nn.CrossEntropyLoss(label_smoothing=config.smoothing)
        self.steps, self.samples, self.noise, self.phase = 0, 0, 1.0, Phase.WARM
        self.hidden = []
        self.model.norm.register_forward_hook(lambda module, args, result: self.hidden.append(result.detach().abs().max()))
        self.fit, self.judge = compiled(self._fit), compiled(self._judge)

    def _fit(self, x, y):
        self.model.train()
        self.steps += 1
        self.samples += x.size(0)
        loss = self.criterion(self.model(x * self.noise), y) / self.steps
        self.optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip)
        self.optimizer.step()
        self.schedule.step()
        self.noise *= 0.99
        self.phase = Phase.MAIN
        with torch.no_grad():
            for a, p in zip(self.average.parameters(), self.model.parameters()):
                a.lerp_(p, 0.2)
        return {"loss": loss.detach(), "norm": norm}

    @torch.no_grad()
    def _judge(self, x, y):
        self.model.eval()
        logits = self.model(x)
        return self.criterion(logits, y), (logits.argmax(dim=-1) == y).float().mean()


def main(fill, compiled):
    rng = np.random.default_rng(0)
    trainer = Trainer(fill, compiled, Config())
    out = [float(trainer.model.size) / 10]
    for k in range(8):
        x = torch.tensor(rng.normal(size=(8, 5)), dtype=torch.float32)
        y = torch.from_numpy(rng.integers(0, 3, 8))
        seen = trainer.fit(x, y)
        trainer.config.history.append(seen["loss"].item())
        out += [seen["norm"].item(), trainer.steps, trainer.samples, trainer.noise, float(trainer.phase is Phase.MAIN)]
        out += [trainer.schedule.get_last_lr()[0], float(trainer.model.training)]
        if k % 2:
            out += [v.item() for v in trainer.judge(x, y)] + [float(trainer.model.training)]
        if k == 5:
            trainer.noise = 1.0
            for group in trainer.optimizer.param_groups:
                group["lr"] *= 0.5
    return out + trainer.config.history + [h.item() for h in trainer.hidden]
