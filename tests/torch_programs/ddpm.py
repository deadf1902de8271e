import copy
import math
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from functools import partial

def exists(x):
    return x is not None

def default(val, d):
    if exists(val):
        return val
    return d() if callable(d) else d

def extract(a, t, x_shape):
    b, *_ = t.shape
    out = a.gather(-1, t)
    return out.reshape(b, *((1,) * (len(x_shape) - 1)))

def cosine_beta_schedule(timesteps, s = 0.008):
    steps = timesteps + 1
    t = torch.linspace(0, timesteps, steps, dtype = torch.float64) / timesteps
    alphas_cumprod = torch.cos((t + s) / (1 + s) * math.pi * 0.5) ** 2
    alphas_cumprod = alphas_cumprod / alphas_cumprod[0]
    betas = 1 - (alphas_cumprod[1:] / alphas_cumprod[:-1])
    return torch.clip(betas, 0, 0.999)

class SinusoidalPosEmb(nn.Module):
    def __init__(self, dim, theta = 10000):
        super().__init__()
        self.dim = dim
        self.theta = theta
    def forward(self, x):
        device = x.device
        half_dim = self.dim // 2
        emb = math.log(self.theta) / (half_dim - 1)
        emb = torch.exp(torch.arange(half_dim, device=device) * -emb)
        emb = x[:, None] * emb[None, :]
        emb = torch.cat((emb.sin(), emb.cos()), dim=-1)
        return emb

class Block(nn.Module):
    def __init__(self, dim, dim_out, groups=2):
        super().__init__()
        self.proj = nn.Conv2d(dim, dim_out, 3, padding = 1)
        self.norm = nn.GroupNorm(groups, dim_out)
        self.act = nn.SiLU()
    def forward(self, x, scale_shift = None):
        x = self.proj(x)
        x = self.norm(x)
        if exists(scale_shift):
            scale, shift = scale_shift
            x = x * (scale + 1) + shift
        return self.act(x)

class Unet(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.time_mlp = nn.Sequential(SinusoidalPosEmb(dim), nn.Linear(dim, dim * 2), nn.GELU(), nn.Linear(dim * 2, dim * 2))
        self.init_conv = nn.Conv2d(1, dim, 7, padding=3)
        self.block1 = Block(dim, dim)
        self.down = nn.Conv2d(dim, dim, 4, 2, 1)
        self.mid = Block(dim, dim)
        self.up = nn.Sequential(nn.Upsample(scale_factor=2, mode='nearest'), nn.Conv2d(dim, dim, 3, padding=1))
        self.block2 = Block(dim * 2, dim)
        self.final = nn.Conv2d(dim, 1, 1)
    def forward(self, x, time):
        t = self.time_mlp(time)
        t = t[..., None, None]
        scale_shift = t.chunk(2, dim=1)
        x = self.init_conv(x)
        h = self.block1(x, scale_shift)
        x = self.down(h)
        x = self.mid(x)
        x = self.up(x)
        x = torch.cat((x, h), dim=1)
        x = self.block2(x)
        return self.final(x)

class GaussianDiffusion(nn.Module):
    def __init__(self, model, timesteps=20):
        super().__init__()
        self.model = model
        betas = cosine_beta_schedule(timesteps)
        alphas = 1. - betas
        alphas_cumprod = torch.cumprod(alphas, dim=0)
        alphas_cumprod_prev = F.pad(alphas_cumprod[:-1], (1, 0), value = 1.)
        timesteps, = betas.shape
        self.num_timesteps = int(timesteps)
        register_buffer = lambda name, val: self.register_buffer(name, val.to(torch.float32))
        register_buffer('betas', betas)
        register_buffer('alphas_cumprod', alphas_cumprod)
        register_buffer('sqrt_alphas_cumprod', torch.sqrt(alphas_cumprod))
        register_buffer('sqrt_one_minus_alphas_cumprod', torch.sqrt(1. - alphas_cumprod))
        posterior_variance = betas * (1. - alphas_cumprod_prev) / (1. - alphas_cumprod)
        register_buffer('posterior_log_variance_clipped', torch.log(posterior_variance.clamp(min =1e-20)))
        snr = alphas_cumprod / (1 - alphas_cumprod)
        maybe_clipped_snr = snr.clone()
        maybe_clipped_snr.clamp_(max = 5)
        register_buffer('loss_weight', maybe_clipped_snr / snr)
    @property
    def device(self):
        return self.betas.device
    def q_sample(self, x_start, t, noise = None):
        noise = default(noise, lambda: torch.randn_like(x_start))
        return (
            extract(self.sqrt_alphas_cumprod, t, x_start.shape) * x_start +
            extract(self.sqrt_one_minus_alphas_cumprod, t, x_start.shape) * noise
        )
    def p_losses(self, x_start, t, noise = None):
        x = self.q_sample(x_start = x_start, t = t, noise = noise)
        model_out = self.model(x, t)
        loss = F.mse_loss(model_out, noise, reduction = 'none')
        loss = loss.flatten(1).mean(dim=1)
        loss = loss * extract(self.loss_weight, t, loss.shape)
        return loss.mean()
    def forward(self, img, *args, **kwargs):
        b, c, h, w, device, = *img.shape, img.device
        return self.p_losses(img, *args, **kwargs)

class EMA:
    def __init__(self, beta):
        super().__init__()
        self.beta = beta
        self.step = 0
    def update_model_average(self, ma_model, current_model):
        for current_params, ma_params in zip(current_model.parameters(), ma_model.parameters()):
            old_weight, up_weight = ma_params.data, current_params.data
            ma_params.data = self.update_average(old_weight, up_weight)
    def update_average(self, old, new):
        if old is None:
            return new
        return old * self.beta + (1 - self.beta) * new
    def step_ema(self, ema_model, model, step_start_ema=2):
        if self.step < step_start_ema:
            self.reset_parameters(ema_model, model)
            self.step += 1
            return
        self.update_model_average(ema_model, model)
        self.step += 1
    def reset_parameters(self, ema_model, model):
        ema_model.load_state_dict(model.state_dict())

def main(fill, compiled):
    rng = np.random.default_rng(0)
    model = fill(GaussianDiffusion(Unet(4)))
    opt = torch.optim.Adam(model.parameters(), lr = 1e-2, betas = (0.9, 0.99))
    ema = EMA(0.9)
    ema_model = copy.deepcopy(model).eval().requires_grad_(False)
    def step(img, t, noise):
        loss = model(img, t, noise=noise)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad()
        return loss
    step = compiled(step)
    out = []
    for i in range(5):
        img = torch.tensor(rng.normal(size=(2, 1, 8, 8)), dtype=torch.float)
        noise = torch.tensor(rng.normal(size=(2, 1, 8, 8)), dtype=torch.float)
        t = torch.tensor(rng.integers(0, 20, (2,))).long()
        out.append(step(img, t, noise).item())
        ema.step_ema(ema_model, model)
    with torch.no_grad():
        out.append(ema_model(img, t, noise=noise).item())
    return out
