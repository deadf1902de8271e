"""A vision transformer with a data set, parameter groups by name, and warm-up."""
import math
import numpy as np
import torch
from torch import nn, Tensor
import torch.nn.functional as F
from torch.utils.data import Dataset, DataLoader

class PatchEmbedding(nn.Module):
    def __init__(self, in_channels: int = 3, patch_size: int = 4, emb_size: int = 16, img_size: int = 8):
        super().__init__()
        self.patch_size = patch_size
        self.proj = nn.Conv2d(in_channels, emb_size, kernel_size=patch_size, stride=patch_size)
        self.cls_token = nn.Parameter(torch.randn(1, 1, emb_size))
        self.positions = nn.Parameter(torch.randn((img_size // patch_size) ** 2 + 1, emb_size))
    def forward(self, x: Tensor) -> Tensor:
        b, c, h, w = x.shape
        assert h % self.patch_size == 0, f"height {h}"
        x = self.proj(x).flatten(2).transpose(1, 2)
        cls_tokens = self.cls_token.expand(b, -1, -1)
        x = torch.cat([cls_tokens, x], dim=1)
        x += self.positions
        return x

class Attention(nn.Module):
    def __init__(self, dim, heads=2, dropout=0.):
        super().__init__()
        self.heads, self.scale = heads, (dim // heads) ** -0.5
        self.qkv = nn.Linear(dim, dim * 3, bias=False)
        self.proj = nn.Linear(dim, dim)
        self.attn_drop = nn.Dropout(dropout)
    def forward(self, x):
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        attn = (q @ k.transpose(-2, -1)) * self.scale
        attn = attn.softmax(dim=-1)
        attn = self.attn_drop(attn)
        x = (attn @ v).transpose(1, 2).reshape(B, N, C)
        return self.proj(x)

class DropPath(nn.Module):
    def __init__(self, drop_prob=0.):
        super().__init__(); self.drop_prob = drop_prob
    def forward(self, x):
        if self.drop_prob == 0. or not self.training:
            return x
        keep_prob = 1 - self.drop_prob
        shape = (x.shape[0],) + (1,) * (x.ndim - 1)
        random_tensor = keep_prob + torch.rand(shape, dtype=x.dtype, device=x.device)
        random_tensor.floor_()
        return x.div(keep_prob) * random_tensor
    def extra_repr(self):
        return f"p={self.drop_prob}"

class Block(nn.Module):
    def __init__(self, dim, drop_path=0.):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim, eps=1e-6)
        self.attn = Attention(dim)
        self.drop_path = DropPath(drop_path) if drop_path > 0. else nn.Identity()
        self.norm2 = nn.LayerNorm(dim, eps=1e-6)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Dropout(0.0), nn.Linear(2 * dim, dim))
        self.ls = nn.Parameter(1e-1 * torch.ones(dim))
    def forward(self, x):
        x = x + self.drop_path(self.ls * self.attn(self.norm1(x)))
        return x + self.drop_path(self.mlp(self.norm2(x)))

class ViT(nn.Module):
    def __init__(self, depth=2, n_classes=5, dim=16):
        super().__init__()
        self.patch = PatchEmbedding(emb_size=dim)
        dpr = [x.item() for x in torch.linspace(0, 0.0, depth)]
        self.blocks = nn.Sequential(*[Block(dim, dpr[i]) for i in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, n_classes)
        nn.init.trunc_normal_(self.patch.cls_token, std=.02)
        self.apply(self._init_weights)
    def _init_weights(self, m):
        if isinstance(m, nn.Linear):
            nn.init.trunc_normal_(m.weight, std=.02)
            if isinstance(m, nn.Linear) and m.bias is not None:
                nn.init.constant_(m.bias, 0)
        elif isinstance(m, nn.LayerNorm):
            nn.init.constant_(m.bias, 0); nn.init.constant_(m.weight, 1.0)
    def no_weight_decay(self):
        return {'pos_embed', 'cls_token'}
    def forward(self, x):
        x = self.norm(self.blocks(self.patch(x)))
        return self.head(x[:, 0])

class Data(Dataset):
    def __init__(self, n=22):
        rng = np.random.default_rng(0)
        self.x = rng.normal(size=(n, 3, 8, 8)).astype(np.float32)
        self.y = rng.integers(0, 5, n)
    def __len__(self): return len(self.x)
    def __getitem__(self, i):
        return torch.from_numpy(self.x[i]), int(self.y[i])

def groups(model):
    decay, no_decay = [], []
    for name, p in model.named_parameters():
        if not p.requires_grad: continue
        if p.ndim <= 1 or name.endswith(".bias") or name.split('.')[-1] in model.no_weight_decay():
            no_decay.append(p)
        else:
            decay.append(p)
    return [{"params": no_decay, "weight_decay": 0.}, {"params": decay, "weight_decay": 0.05}]

def main(fill, compiled):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = fill(ViT()).to(device)
    opt = torch.optim.AdamW(groups(model), lr=1e-2)
    warm, total = 2, 8
    def rate(s):
        return (s + 1) / warm if s < warm else 0.5 * (1 + math.cos(math.pi * (s - warm) / (total - warm)))
    sched = torch.optim.lr_scheduler.LambdaLR(opt, rate)
    crit = nn.CrossEntropyLoss(label_smoothing=0.1)
    loader = DataLoader(Data(), batch_size=8, shuffle=False, drop_last=False, num_workers=0, pin_memory=False)

    def train_step(images, targets):
        opt.zero_grad(set_to_none=True)
        out = model(images)
        loss = crit(out, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        opt.step()
        with torch.no_grad():
            acc = (out.argmax(dim=1) == targets).float().mean()
        return loss, acc
    train_step = compiled(train_step)
    @compiled
    @torch.inference_mode()
    def evaluate(images):
        return model(images).softmax(-1)
    res = []
    for epoch in range(2):
        model.train()
        for images, targets in loader:
            images, targets = images.to(device, non_blocking=True), targets.to(device, non_blocking=True)
            loss, acc = train_step(images, targets)
            res.append([loss.item(), acc.item()])
            sched.step()
        model.eval()
        res.append(evaluate(images))
    res.append(sched.get_last_lr())
    return [res, {k: v for k, v in model.state_dict().items()}]
