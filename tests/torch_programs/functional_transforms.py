"""torch.func: MAML over a batch of tasks, gradients per example, Jacobians, and ensembles."""
import numpy as np
import torch
from torch import nn
import torch.nn.functional as F
from torch.func import functional_call, grad, vmap, grad_and_value, vjp, jvp, jacrev, jacfwd, hessian, stack_module_state

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(1, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
    def forward(self, x): return self.layers(x)

def main(fill, compiled):
    rng = np.random.default_rng(0)
    f = lambda *s: torch.from_numpy(rng.normal(size=s).astype(np.float32))
    net = fill(Net())
    params = dict(net.named_parameters())
    opt = torch.optim.Adam(params.values(), lr=1e-2)
    alpha = 0.1
    def get_loss_for_task(x1, y1, x2, y2):
        def inner_loss(params, x1, y1):
            return ((functional_call(net, params, (x1,)) - y1) ** 2).mean()
        grads = grad(inner_loss)(params, x1, y1)
        new_params = {k: (params[k] - alpha * grads[k]) for k in params}
        return ((functional_call(net, new_params, (x2,)) - y2) ** 2).mean()
    @compiled
    def step(task):
        inner_losses = vmap(get_loss_for_task)(*task)
        loss2 = sum(inner_losses) / len(inner_losses)
        opt.zero_grad()
        loss2.backward()
        opt.step()
        return loss2
    res = []
    for n in (3, 3, 4):
        res.append(step((f(n, 6, 1), f(n, 6, 1), f(n, 6, 1), f(n, 6, 1))).item())
    # per-sample gradients
    def compute_loss(params, buffers, sample, target):
        batch = sample.unsqueeze(0); targets = target.unsqueeze(0)
        predictions = functional_call(net, (params, buffers), (batch,))
        return F.mse_loss(predictions, targets)
    ft = vmap(grad(compute_loss), in_dims=(None, None, 0, 0))
    p = {k: v.detach() for k, v in net.named_parameters()}; b = {k: v.detach() for k, v in net.named_buffers()}
    xs, ys = f(5, 1), f(5, 1)
    psg = compiled(lambda xs, ys: ft(p, b, xs, ys))(xs, ys)
    return [res, psg, *derivatives(f(3), compiled), ensemble(fill, xs), list(net.parameters())]

def derivatives(w, compiled):
    h = compiled(hessian(lambda w: (w.sin() * w.flip(0)).sum()))(w)
    J = compiled(jacrev(lambda w: w.cumsum(0).exp()))(w); J2 = jacfwd(lambda w: w.cumsum(0).exp())(w)
    g, v = grad_and_value(lambda w: (w ** 3).sum())(w)
    out, vjp_fn = vjp(lambda w: (w.sin(), w.cos()), w)
    cot = vjp_fn((torch.ones(3), torch.ones(3)))
    pr = jvp(lambda w: w.sin(), (w,), (torch.ones(3),))
    g2, aux = grad(lambda w: ((w ** 2).sum(), w * 2), has_aux=True)(w)
    return [h, J, J2, g, v, list(cot), list(pr), g2, aux]

def ensemble(fill, xs):
    models = [fill(Net()) for _ in range(3)]
    sp, sb = stack_module_state(models)
    def fmodel(params, buffers, x): return functional_call(models[0], (params, buffers), (x,))
    return vmap(fmodel, in_dims=(0, 0, None), randomness="different")(sp, sb, xs)
