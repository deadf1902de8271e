"""A small GPT that is trained, and generates with a cache of keys and values, temperature and top-k."""

import math

import torch
import torch.nn as nn
from torch.nn import functional as F


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size):
        super().__init__()
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)
        self.n_head = n_head
        self.register_buffer("mask", torch.tril(torch.ones(block_size, block_size)).view(1, 1, block_size, block_size))

    def forward(self, x, cache=None):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(C, dim=2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        past = 0
        if cache is not None:
            past = cache["len"]
            cache["k"][:, :, past : past + T] = k
            cache["v"][:, :, past : past + T] = v
            k, v = cache["k"][:, :, : past + T], cache["v"][:, :, : past + T]
            cache["len"] = past + T
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.mask[:, :, past : past + T, : past + T] == 0, float("-inf"))
        att = F.softmax(att, dim=-1)
        y = att @ v
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))


class Block(nn.Module):
    def __init__(self, n_embd, n_head, block_size):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.attn = CausalSelfAttention(n_embd, n_head, block_size)
        self.mlp = nn.ModuleDict(dict(c_fc=nn.Linear(n_embd, 2 * n_embd), act=nn.GELU(), c_proj=nn.Linear(2 * n_embd, n_embd)))

    def forward(self, x, cache=None):
        x = x + self.attn(self.ln_1(x), cache)
        m = self.mlp
        return x + m.c_proj(m.act(m.c_fc(self.ln_2(x))))


class GPT(nn.Module):
    def __init__(self, vocab, block_size, n_layer=2, n_head=2, n_embd=16):
        super().__init__()
        self.block_size = block_size
        self.n_head, self.n_embd = n_head, n_embd
        self.transformer = nn.ModuleDict(
            dict(
                wte=nn.Embedding(vocab, n_embd),
                wpe=nn.Embedding(block_size, n_embd),
                h=nn.ModuleList([Block(n_embd, n_head, block_size) for _ in range(n_layer)]),
                ln_f=nn.LayerNorm(n_embd),
            )
        )
        self.lm_head = nn.Linear(n_embd, vocab, bias=False)
        self.transformer.wte.weight = self.lm_head.weight

    def forward(self, idx, targets=None, caches=None):
        B, T = idx.size()
        assert T <= self.block_size, f"Cannot forward sequence of length {T}"
        past = 0 if caches is None else caches[0]["len"]
        pos = torch.arange(past, past + T, dtype=torch.long, device=idx.device).unsqueeze(0)
        x = self.transformer.wte(idx) + self.transformer.wpe(pos)
        for i, block in enumerate(self.transformer.h):
            x = block(x, None if caches is None else caches[i])
        logits = self.lm_head(self.transformer.ln_f(x))
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
        return logits, loss

    def empty_caches(self, batch):
        shape = (batch, self.n_head, self.block_size, self.n_embd // self.n_head)
        return [{"k": torch.zeros(shape), "v": torch.zeros(shape), "len": 0} for _ in self.transformer.h]

    @torch.no_grad()
    def generate(self, idx, max_new_tokens, temperature=1.0, top_k=None):
        caches = self.empty_caches(idx.size(0))
        logits, _ = self(idx, caches=caches)
        chances = []
        for _ in range(max_new_tokens):
            logits = logits[:, -1, :] / temperature
            if top_k is not None:
                v, _ = torch.topk(logits, top_k)
                logits[logits < v[:, [-1]]] = -float("Inf")
            probs = F.softmax(logits, dim=-1)
            _, idx_next = torch.topk(probs, k=1, dim=-1)
            chances.append(probs.gather(1, idx_next))
            idx = torch.cat((idx, idx_next), dim=1)
            logits, _ = self(idx_next, caches=caches)
        return idx, torch.cat(chances, dim=1)


def main(fill, compile):
    model = fill(GPT(11, 12))
    decay = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}], lr=1e-2, betas=(0.9, 0.95)
    )

    @compile
    def step(x, y):
        logits, loss = model(x, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    data = (torch.arange(60) * 3 + torch.arange(60) // 7) % 11
    losses = []
    for k in range(10):
        x = torch.stack([data[i : i + 8] for i in (k, k + 9, k + 17, k + 30)])
        y = torch.stack([data[i + 1 : i + 9] for i in (k, k + 9, k + 17, k + 30)])
        losses.append(step(x, y).item())
    model.eval()
    idx, chances = model.generate(data[None, :4], 6, temperature=0.8, top_k=3)
    # without a cache the model says the same
    with torch.no_grad():
        full = F.softmax(model(idx[:, :-1])[0][:, -1] / 0.8, dim=-1).max().item()
    return losses + idx[0].tolist() + chances[0].tolist() + [full]
