"""A mixture of experts: top-k routing, index_add_ of each expert's tokens, a loss that balances them."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import numpy as np

class Expert(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.w1 = nn.Linear(dim, hidden, bias=False)
        self.w2 = nn.Linear(hidden, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden, bias=False)
    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))

class MoE(nn.Module):
    def __init__(self, dim, hidden, num_experts=3, top_k=2):
        super().__init__()
        self.num_experts, self.top_k = num_experts, top_k
        self.gate = nn.Linear(dim, num_experts, bias=False)
        self.experts = nn.ModuleList([Expert(dim, hidden) for _ in range(num_experts)])
    def forward(self, hidden_states):
        b, s, d = hidden_states.shape
        hidden_states = hidden_states.view(-1, d)
        router_logits = self.gate(hidden_states)
        routing_weights = F.softmax(router_logits, dim=1, dtype=torch.float)
        routing_weights, selected = torch.topk(routing_weights, self.top_k, dim=-1)
        routing_weights /= routing_weights.sum(dim=-1, keepdim=True)
        final = torch.zeros((b * s, d), dtype=hidden_states.dtype, device=hidden_states.device)
        expert_mask = torch.nn.functional.one_hot(selected, num_classes=self.num_experts).permute(2, 1, 0)
        for expert_idx in range(self.num_experts):
            idx, top_x = torch.where(expert_mask[expert_idx])
            current_state = hidden_states[None, top_x].reshape(-1, d)
            current = self.experts[expert_idx](current_state) * routing_weights[top_x, idx, None]
            final.index_add_(0, top_x, current.to(hidden_states.dtype))
        return final.reshape(b, s, d), router_logits

def load_balancing_loss(gate_logits, num_experts, top_k=2):
    routing_weights = torch.nn.functional.softmax(gate_logits, dim=-1)
    _, selected = torch.topk(routing_weights, top_k, dim=-1)
    expert_mask = torch.nn.functional.one_hot(selected, num_experts)
    tokens_per_expert = torch.mean(expert_mask.float(), dim=0)
    router_prob = torch.mean(routing_weights, dim=0)
    return torch.sum(tokens_per_expert * router_prob.unsqueeze(0)) * num_experts

def main(fill, compiled):
    rng = np.random.default_rng(2)
    m = fill(MoE(8, 12))
    opt = torch.optim.AdamW(m.parameters(), lr=1e-2, betas=(0.9, 0.95), weight_decay=0.1, foreach=True)
    x = torch.tensor(rng.normal(size=(2, 5, 8)).astype(np.float32))
    y = torch.tensor(rng.normal(size=(2, 5, 8)).astype(np.float32))
    def step(x, y):
        out, logits = m(x)
        loss = F.mse_loss(out, y) + 0.01 * load_balancing_loss(logits, 3)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        opt.step()
        return loss
    step = compiled(step)
    return [step(x, y).item() for _ in range(2)]
