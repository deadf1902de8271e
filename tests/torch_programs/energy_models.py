"""An energy-based model with Langevin steps, an ODE, a network that makes weights, and a deep equilibrium."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
def langevin(model, x, noise, steps, step_size, return_all=False):
    is_training = model.training
    model.eval()
    for p in model.parameters(): p.requires_grad = False
    x.requires_grad = True
    had = torch.is_grad_enabled(); torch.set_grad_enabled(True)
    traj = []
    for k in range(steps):
        x.data.add_(noise[k].data, alpha=0.005)
        x.data.clamp_(min=-1.0, max=1.0)
        out = -model(x)
        out.sum().backward()
        x.grad.data.clamp_(-0.03, 0.03)
        x.data.add_(-step_size * x.grad.data)
        x.grad.detach_(); x.grad.zero_()
        x.data.clamp_(min=-1.0, max=1.0)
        if return_all: traj.append(x.clone().detach())
    for p in model.parameters(): p.requires_grad = True
    model.train(is_training); torch.set_grad_enabled(had)
    return torch.stack(traj, dim=0) if return_all else x
class ODEFunc(nn.Module):
    def __init__(self):
        super().__init__(); self.net = nn.Sequential(nn.Linear(2, 6), nn.Tanh(), nn.Linear(6, 2)); self.nfe = 0
    def forward(self, t, y): self.nfe += 1; return self.net(y ** 3) * torch.cos(t)
def odeint(func, y0, t):
    ys = [y0]
    for t0, t1 in zip(t[:-1], t[1:]):
        dt = t1 - t0; y = ys[-1]
        k1 = func(t0, y); k2 = func(t0 + dt / 2, y + dt * k1 / 2)
        k3 = func(t0 + dt / 2, y + dt * k2 / 2); k4 = func(t1, y + dt * k3)
        ys.append(y + dt * (k1 + 2 * k2 + 2 * k3 + k4) / 6)
    return torch.stack(ys)
class HyperNet(nn.Module):
    def __init__(self): super().__init__(); self.gen = nn.Linear(3, 4 * 2 + 2); self.z = nn.Parameter(torch.zeros(3))
    def forward(self, x):
        p = self.gen(self.z); return F.linear(x, p[:8].view(2, 4), p[8:])
class DEQ(nn.Module):
    def __init__(self): super().__init__(); self.lin = nn.Linear(4, 4, bias=False)
    def forward(self, x):
        with torch.no_grad():
            z = torch.zeros_like(x); self.it = 0
            while self.it < 50:
                zn = torch.tanh(0.3 * self.lin(z) + x); self.it += 1; self.err = torch.norm(zn - z); z = zn
                if self.err < 1e-4: break
        z = torch.tanh(0.3 * self.lin(z) + x)
        z0 = z.clone().detach().requires_grad_(); f0 = torch.tanh(0.3 * self.lin(z0) + x)
        def bhook(grad):
            g = grad
            for _ in range(20): g = torch.autograd.grad(f0, z0, g, retain_graph=True)[0] + grad
            return g
        if z.requires_grad: z.register_hook(bhook)
        return z
def main(fill, compiled):
    rng = np.random.default_rng(0)
    f = lambda *s: torch.from_numpy(rng.normal(size=s).astype(np.float32))
    e = fill(nn.Sequential(nn.Linear(4, 8), nn.SiLU(), nn.Linear(8, 1))); 
    oe = torch.optim.Adam(e.parameters(), lr=1e-2, betas=(0.0, 0.999))
    se = torch.optim.lr_scheduler.StepLR(oe, 1, gamma=0.97)
    buf = [torch.tanh(f(1, 4)) for _ in range(8)]
    lang = lambda x, n: langevin(e, x, n, 4, 10.)
    @compiled
    def ebm(real, fake):
        real, fake = real + 0.01, fake.detach()
        oe.zero_grad()
        r, k = e(torch.cat([real, fake], dim=0)).chunk(2, dim=0)
        reg = 0.1 * (r ** 2 + k ** 2).mean(); cd = k.mean() - r.mean(); loss = reg + cd
        loss.backward(); nn.utils.clip_grad_norm_(e.parameters(), 0.1); oe.step()
        return loss, cd
    res = []
    for k in range(3):
        x = torch.cat(buf[:4]).detach()
        fake = lang(x, f(4, 4, 4)); buf = list(fake.detach().cpu().chunk(4, dim=0)) + buf[:4]
        res += list(ebm(torch.tanh(f(4, 4)), fake)) + [fake.detach()]; se.step()
    o = fill(ODEFunc()); oo = torch.optim.RMSprop(o.parameters(), lr=1e-2); t = torch.linspace(0., 1., 4)
    @compiled
    def ode(y0, tgt):
        oo.zero_grad(); y = odeint(o, y0, t); loss = (y - tgt).abs().mean(); loss.backward(); oo.step(); return loss
    for b in (3, 3, 2): res.append(ode(f(b, 2), f(4, b, 2)))
    res.append(o.nfe)
    h = fill(HyperNet()); d = fill(DEQ()); oh = torch.optim.Adam([*h.parameters(), *d.parameters()], lr=0.01)
    @compiled
    def hyp(x, y):
        oh.zero_grad(); loss = F.mse_loss(h(d(x)), y); loss.backward(); oh.step(); return loss
    for b in (3, 3, 2): res.append(hyp(f(b, 4), f(b, 2)))
    mem = f(5, 4); q = f(2, 4); beta = 2.0
    hop = compiled(lambda q: torch.softmax(beta * q @ mem.T, -1) @ mem)
    for _ in range(2): q = hop(q)
    img, run = optimised(e, f)
    return [res, q, img, run, list(e.parameters()), list(o.parameters()), list(h.parameters()), list(d.parameters())]

def optimised(e, f):
    """The input is what is trained, as in style transfer."""
    img = f(1, 4).requires_grad_(True); ob = torch.optim.LBFGS([img]); run = [0]
    while run[0] <= 10:
        def closure():
            with torch.no_grad(): img.clamp_(-1, 1)
            ob.zero_grad(); l = (e(img) ** 2).sum() + (img ** 2).sum(); l.backward(); run[0] += 1; return l
        ob.step(closure)
    return img, run
