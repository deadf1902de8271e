"""A codebook that follows its encodings, with buffers changed in place and rows that are replaced."""
import numpy as np
import torch
from torch import nn
import torch.nn.functional as F
from torch import einsum

def exists(val): return val is not None
def default(val, d): return val if exists(val) else d
def ema_inplace(moving_avg, new, decay):
    moving_avg.data.mul_(decay).add_(new, alpha=(1 - decay))
def laplace_smoothing(x, n_categories, eps=1e-5):
    return (x + eps) / (x.sum() + n_categories * eps)

class EuclideanCodebook(nn.Module):
    def __init__(self, dim, codebook_size, decay=0.8, eps=1e-5, threshold=2):
        super().__init__()
        self.decay, self.eps, self.codebook_size, self.threshold = decay, eps, codebook_size, threshold
        embed = torch.from_numpy(np.random.default_rng(9).normal(size=(codebook_size, dim)).astype(np.float32))
        self.register_buffer('initted', torch.Tensor([False]))
        self.register_buffer('cluster_size', torch.zeros(codebook_size))
        self.register_buffer('embed', embed)
        self.register_buffer('embed_avg', embed.clone())
    @torch.jit.ignore
    def init_embed_(self, data):
        if self.initted:
            return
        embed = data[:self.codebook_size]
        self.embed.data.copy_(embed)
        self.embed_avg.data.copy_(embed.clone())
        self.initted.data.copy_(torch.Tensor([True]))
    def replace(self, samples, mask):
        modified = torch.where(mask[..., None], samples[:self.codebook_size], self.embed)
        self.embed.data.copy_(modified)
    def expire_codes_(self, batch_samples):
        if self.threshold == 0: return
        expired_codes = self.cluster_size < self.threshold
        if not torch.any(expired_codes):
            return
        self.replace(batch_samples, mask=expired_codes)
    def forward(self, x):
        shape, dtype = x.shape, x.dtype
        flatten = x.reshape(-1, shape[-1])
        self.init_embed_(flatten)
        embed = self.embed.t()
        dist = -(flatten.pow(2).sum(1, keepdim=True) - 2 * flatten @ embed + embed.pow(2).sum(0, keepdim=True))
        embed_ind = dist.max(dim=-1).indices
        embed_onehot = F.one_hot(embed_ind, self.codebook_size).type(dtype)
        embed_ind = embed_ind.view(*shape[:-1])
        quantize = F.embedding(embed_ind, self.embed)
        if self.training:
            ema_inplace(self.cluster_size, embed_onehot.sum(0), self.decay)
            embed_sum = flatten.t() @ embed_onehot
            ema_inplace(self.embed_avg, embed_sum.t(), self.decay)
            cluster_size = laplace_smoothing(self.cluster_size, self.codebook_size, self.eps) * self.cluster_size.sum()
            embed_normalized = self.embed_avg / cluster_size.unsqueeze(1)
            self.embed.data.copy_(embed_normalized)
            self.expire_codes_(flatten.detach())
        return quantize, embed_ind

class VQ(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Conv1d(2, 4, 3, padding=1); self.dec = nn.ConvTranspose1d(4, 2, 3, padding=1)
        self.cb = EuclideanCodebook(4, 6)
    def forward(self, x):
        z = self.enc(x).transpose(1, 2)
        quantize, ind = self.cb(z)
        commit = torch.tensor([0.], device=x.device, requires_grad=self.training)
        if self.training:
            quantize = z + (quantize - z).detach()
            commit = commit + F.mse_loss(quantize.detach(), z) * 0.25
            commit = commit + F.mse_loss(F.embedding(ind, self.cb.embed.detach()), z) * 0.1
        return self.dec(quantize.transpose(1, 2)), ind, commit

def main(fill, compiled):
    rng = np.random.default_rng(0)
    m = fill(VQ())
    opt = torch.optim.Adam(m.parameters(), lr=3e-3)
    @compiled
    def step(x):
        opt.zero_grad()
        out, ind, commit = m(x)
        rec = (out - x).abs().mean()
        (rec + commit.sum()).backward()
        opt.step()
        return rec, commit, ind
    @compiled
    def infer(x):
        return m(x)
    res = []
    for k in range(6):
        x = torch.from_numpy(rng.normal(size=(2 + k // 3, 2, 8)).astype(np.float32))
        m.train()
        r, c, i = step(x); res += [r, c, i]
        m.eval()
        with torch.no_grad(): o, i, c = infer(x)
        res += [o, i, c]
    return [res, {k: v for k, v in m.state_dict().items()}]
