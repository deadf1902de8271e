"""Radiance fields, sine layers trained on derivatives, and Gaussians drawn on a plane."""
import numpy as np
import torch
from torch import nn
import torch.nn.functional as F

def positional_encoding(x, L=3):
    freq = 2. ** torch.linspace(0., L - 1, L)
    out = [x]
    for f in freq:
        for fn in [torch.sin, torch.cos]: out.append(fn(f * x))
    return torch.cat(out, -1)

def cumprod_exclusive(tensor):
    dim = -1
    cumprod = torch.cumprod(tensor, dim)
    cumprod = torch.roll(cumprod, 1, dim)
    cumprod[..., 0] = 1.
    return cumprod

def get_rays(H, W, focal, c2w):
    i, j = torch.meshgrid(torch.linspace(0, W - 1, W), torch.linspace(0, H - 1, H), indexing='ij')
    i, j = i.t(), j.t()
    dirs = torch.stack([(i - W * .5) / focal, -(j - H * .5) / focal, -torch.ones_like(i)], -1)
    rays_d = torch.sum(dirs[..., np.newaxis, :] * c2w[:3, :3], -1)
    rays_o = c2w[:3, -1].expand(rays_d.shape)
    return rays_o, rays_d

def render(model, ro, rd, near, far, N):
    z_vals = torch.linspace(near, far, N).to(ro)
    pts = ro[..., None, :] + rd[..., None, :] * z_vals[..., :, None]
    flat = pts.reshape((-1, 3))
    batches = [positional_encoding(flat[i:i + 40]) for i in range(0, flat.shape[0], 40)]
    raw = torch.cat([model(b) for b in batches], dim=0)
    raw = torch.reshape(raw, list(pts.shape[:-1]) + [4])
    sigma = F.relu(raw[..., 3]); rgb = torch.sigmoid(raw[..., :3])
    one_e_10 = torch.tensor([1e10], dtype=ro.dtype, device=ro.device)
    dists = torch.cat((z_vals[..., 1:] - z_vals[..., :-1], one_e_10.expand(z_vals[..., :1].shape)), dim=-1)
    alpha = 1. - torch.exp(-sigma * dists)
    weights = alpha * cumprod_exclusive(1. - alpha + 1e-10)
    return (weights[..., None] * rgb).sum(dim=-2), (weights * z_vals).sum(dim=-1), weights.sum(-1)

def sample_pdf(bins, weights, N):
    weights = weights + 1e-5
    pdf = weights / torch.sum(weights, -1, keepdim=True)
    cdf = torch.cumsum(pdf, -1)
    cdf = torch.cat([torch.zeros_like(cdf[..., :1]), cdf], -1)
    u = torch.linspace(0., 1., steps=N).expand(list(cdf.shape[:-1]) + [N]).contiguous()
    inds = torch.searchsorted(cdf.detach(), u, right=True)
    below = torch.max(torch.zeros_like(inds - 1), inds - 1)
    above = torch.min((cdf.shape[-1] - 1) * torch.ones_like(inds), inds)
    inds_g = torch.stack([below, above], -1)
    matched = [inds_g.shape[0], inds_g.shape[1], cdf.shape[-1]]
    cdf_g = torch.gather(cdf.unsqueeze(1).expand(matched), 2, inds_g)
    bins_g = torch.gather(bins.unsqueeze(1).expand(matched), 2, inds_g)
    denom = cdf_g[..., 1] - cdf_g[..., 0]
    denom = torch.where(denom < 1e-5, torch.ones_like(denom), denom)
    t = (u - cdf_g[..., 0]) / denom
    return bins_g[..., 0] + t * (bins_g[..., 1] - bins_g[..., 0])

class SineLayer(nn.Module):
    def __init__(self, i, o, is_first=False, omega_0=30):
        super().__init__()
        self.omega_0, self.is_first, self.in_features = omega_0, is_first, i
        self.linear = nn.Linear(i, o); self.init_weights()
    def init_weights(self):
        with torch.no_grad():
            if self.is_first: self.linear.weight.uniform_(-1 / self.in_features, 1 / self.in_features)
            else:
                bound = np.sqrt(6 / self.in_features) / self.omega_0
                self.linear.weight.uniform_(-bound, bound)
    def forward(self, input): return torch.sin(self.omega_0 * self.linear(input))

def gradient(y, x, grad_outputs=None):
    if grad_outputs is None: grad_outputs = torch.ones_like(y)
    return torch.autograd.grad(y, [x], grad_outputs=grad_outputs, create_graph=True)[0]
def divergence(y, x):
    div = 0.
    for i in range(y.shape[-1]):
        div += torch.autograd.grad(y[..., i], x, torch.ones_like(y[..., i]), create_graph=True)[0][..., i:i + 1]
    return div
def laplace(y, x): return divergence(gradient(y, x), x)

class Siren(nn.Module):
    def __init__(self):
        super().__init__(); self.net = nn.Sequential(SineLayer(2, 8, True, 3.), SineLayer(8, 8, False, 3.), nn.Linear(8, 1))
    def forward(self, coords):
        coords = coords.clone().detach().requires_grad_(True)
        return self.net(coords), coords

class Splat(nn.Module):
    def __init__(self, n=5):
        super().__init__()
        self.mu, self.ls, self.rot, self.col, self.op = (
            nn.Parameter(torch.zeros(*s)) for s in ((n, 2), (n, 2), (n,), (n, 3), (n,)))
    def forward(self, H, W):
        ys, xs = torch.meshgrid(torch.linspace(-1, 1, H), torch.linspace(-1, 1, W), indexing="ij")
        grid = torch.stack([xs, ys], -1).reshape(-1, 2)
        c, s = torch.cos(self.rot), torch.sin(self.rot)
        R = torch.stack([torch.stack([c, -s], -1), torch.stack([s, c], -1)], -2)
        S = torch.diag_embed(self.ls.exp())
        cov = R @ S @ S.mT @ R.mT
        inv = torch.linalg.inv(cov)
        d = grid[:, None] - self.mu[None]
        g = torch.exp(-0.5 * torch.einsum("pni,nij,pnj->pn", d, inv, d))
        a = torch.sigmoid(self.op) * g
        T = torch.cumprod(torch.cat([torch.ones(a.shape[0], 1), 1 - a[:, :-1]], 1), 1)
        return ((T * a) @ torch.sigmoid(self.col)).view(H, W, 3).clamp(0, 1)

def main(fill, compiled):
    rng = np.random.default_rng(0)
    f = lambda *s: torch.from_numpy(rng.normal(size=s).astype(np.float32))
    m, si, sp = fill(nn.Sequential(nn.Linear(21, 12), nn.ReLU(), nn.Linear(12, 4))), fill(Siren()), fill(Splat())
    o = torch.optim.Adam(m.parameters(), lr=5e-3)
    os = torch.optim.Adam(si.parameters(), lr=1e-3)
    op = torch.optim.Adam(sp.parameters(), lr=1e-2)
    pose = torch.eye(4); pose[2, 3] = 3.
    ro, rd = get_rays(4, 5, 4., pose)
    @compiled
    def nerf(ro, rd, target):
        rgb, depth, acc = render(m, ro, rd, near=2., far=6., N=6)
        loss = F.mse_loss(rgb, target)
        o.zero_grad(); loss.backward(); o.step()
        psnr = -10. * torch.log10(loss)
        return loss, psnr, depth, acc
    @compiled
    def poisson(c, gt):
        out, coords = si(c)
        gr = gradient(out, coords); la = laplace(out, coords)
        loss = ((gr - gt) ** 2).sum(-1).mean() + 0.01 * la.pow(2).mean()
        os.zero_grad(); loss.backward(); os.step()
        return loss
    @compiled
    def splat(img):
        out = sp(img.shape[0], img.shape[1])
        loss = (out - img).abs().mean() + 0.1 * F.mse_loss(out, img)
        op.zero_grad(); loss.backward(); op.step()
        return loss
    res = []
    for b in range(3):
        res += list(nerf(ro, rd, torch.sigmoid(f(4, 5, 3))))
        res += [poisson(f(6 - b // 2, 2), f(6 - b // 2, 2)), splat(torch.sigmoid(f(4, 4 + b // 2, 3)))]
    pdf = compiled(sample_pdf)(torch.linspace(0, 1, 5).expand(2, 5), f(2, 4).abs(), 6)
    return [res, pdf, list(m.parameters()), list(si.parameters()), list(sp.parameters())]
