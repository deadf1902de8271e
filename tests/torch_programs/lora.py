"""Low-rank adapters: layers exchanged, frozen weights, tied ones, copies, and states of a part of the model."""
import copy, io, math
import numpy as np
import torch
from torch import nn
import torch.nn.functional as F

class LoRALinear(nn.Module):
    def __init__(self, base: nn.Linear, r=2, alpha=4, dropout=0.0):
        super().__init__()
        self.base = base
        self.base.weight.requires_grad = False
        if self.base.bias is not None:
            self.base.bias.requires_grad_(False)
        self.lora_A = nn.Parameter(base.weight.new_zeros((r, base.in_features)))
        self.lora_B = nn.Parameter(base.weight.new_zeros((base.out_features, r)))
        self.scaling = alpha / r
        self.dropout = nn.Dropout(p=dropout) if dropout > 0 else lambda x: x
        self.merged = False
        nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))
        nn.init.zeros_(self.lora_B)
    def forward(self, x):
        if self.merged:
            return self.base(x)
        return self.base(x) + (self.dropout(x) @ self.lora_A.transpose(0, 1) @ self.lora_B.T) * self.scaling
    @torch.no_grad()
    def merge(self):
        self.base.weight.data += (self.lora_B @ self.lora_A) * self.scaling
        self.merged = True

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(12, 8, padding_idx=0)
        self.block = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 8))
        self.out = nn.Linear(8, 12, bias=False)
        self.out.weight = self.emb.weight
    def forward(self, idx):
        return self.out(self.block(self.emb(idx)).mean(dim=1))

def inject(model, r=2):
    for name, module in list(model.named_modules()):
        for child_name, child in list(module.named_children()):
            if isinstance(child, nn.Linear) and "out" not in child_name:
                setattr(module, child_name, LoRALinear(child, r=r))
    for n, p in model.named_parameters():
        p.requires_grad = "lora_" in n
    return model

def main(fill, compiled):
    rng = np.random.default_rng(0)
    net = fill(Net())
    tied = net.out.weight is net.emb.weight
    base = copy.deepcopy(net)
    tied2 = base.out.weight is base.emb.weight
    model = inject(net)
    fill_b = np.random.default_rng(3)
    with torch.no_grad():
        for m in model.modules():
            if isinstance(m, LoRALinear):
                m.lora_A.copy_(torch.from_numpy(fill_b.normal(size=tuple(m.lora_A.shape)).astype(np.float32)))
    trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
    total = sum(p.numel() for p in model.parameters())
    res = train(model, rng, compiled)
    return [res, tied, tied2, trainable, total, *adapted(model, base), list(model.parameters())]

def train(model, rng, compiled):
    opt = torch.optim.Adam(filter(lambda p: p.requires_grad, model.parameters()), lr=0.05)
    @compiled
    def step(x, y):
        opt.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        return loss
    res = []
    for b in (4, 4, 6):
        x = torch.from_numpy(rng.integers(0, 12, (b, 5))); y = torch.from_numpy(rng.integers(0, 12, b))
        res.append(step(x, y).item())
    res.append(sum(p.grad is None for p in model.parameters()))
    # retrain with second optimizer after unfreezing
    for p in model.parameters(): p.requires_grad_(True)
    opt2 = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    @compiled
    def step2(x, y):
        opt2.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward(); opt2.step()
        return loss
    for _ in range(3): res.append(step2(x, y).item())
    for _ in range(2): res.append(step(x, y).item())
    return res

def adapted(model, base):
    lora_sd = {k: v.cpu().clone() for k, v in model.state_dict().items() if "lora_" in k}
    fresh = inject(copy.deepcopy(base))
    missing, unexpected = fresh.load_state_dict(lora_sd, strict=False)
    x = torch.arange(10).view(2, 5)
    before = fresh(x)
    for m in fresh.modules():
        if isinstance(m, LoRALinear): m.merge()
    after = fresh(x)
    buf = io.BytesIO(); torch.save(fresh.state_dict(), buf); buf.seek(0)
    again = inject(copy.deepcopy(base)); info = again.load_state_dict(torch.load(buf))
    return [len(missing), len(unexpected), before, after, again(x), len(str(info))]
