"""Functions with gradients of their own: a layer, reversal, straight-through, and several results."""
import numpy as np
import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch import nn

class LinearFunction(Function):
    @staticmethod
    def forward(ctx, input, weight, bias=None):
        ctx.save_for_backward(input, weight, bias)
        output = input.mm(weight.t())
        if bias is not None:
            output += bias.unsqueeze(0).expand_as(output)
        return output
    @staticmethod
    def backward(ctx, grad_output):
        input, weight, bias = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_input = grad_output.mm(weight)
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.t().mm(input)
        if bias is not None and ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0)
        return grad_input, grad_weight, grad_bias

class GradReverse(Function):
    @staticmethod
    def forward(ctx, x, lambd):
        ctx.lambd = lambd
        return x.view_as(x)
    @staticmethod
    def backward(ctx, g):
        return g.neg() * ctx.lambd, None

class StraightThrough(Function):
    @staticmethod
    def forward(ctx, x):
        return (x > 0).float()
    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return torch.clamp(g, -1, 1)

class MulTwo(Function):
    @staticmethod
    def forward(a, b):
        return a * b, a + b
    @staticmethod
    def setup_context(ctx, inputs, output):
        a, b = inputs
        ctx.save_for_backward(a, b)
        ctx.set_materialize_grads(False)
    @staticmethod
    def backward(ctx, ga, gb):
        a, b = ctx.saved_tensors
        gx = gy = None
        if ga is not None:
            gx, gy = ga * b, ga * a
        if gb is not None:
            gx = gb if gx is None else gx + gb
            gy = gb if gy is None else gy + gb
        return gx, gy

class Clip(Function):
    @staticmethod
    def forward(ctx, x, lo: float, hi: float):
        ctx.mark_non_differentiable()
        mask = (x >= lo) & (x <= hi)
        ctx.save_for_backward(mask)
        ctx.shape = x.shape
        return x.clamp(lo, hi)
    @staticmethod
    def backward(ctx, g):
        mask, = ctx.saved_tensors
        return g * mask.to(g.dtype), None, None

class Linear(nn.Module):
    def __init__(self, i, o, bias=True):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(o, i))
        if bias: self.bias = nn.Parameter(torch.empty(o))
        else: self.register_parameter('bias', None)
        nn.init.uniform_(self.weight, -0.1, 0.1)
        if self.bias is not None: nn.init.uniform_(self.bias, -0.1, 0.1)
    def forward(self, x): return LinearFunction.apply(x, self.weight, self.bias)
    def extra_repr(self): return f'{self.weight.shape[1]}'

def main(fill, compiled):
    rng = np.random.default_rng(0)
    f = lambda *s: torch.from_numpy(rng.normal(size=s).astype(np.float32))
    net = fill(nn.ModuleList([Linear(4, 6), Linear(6, 3, bias=False), nn.Linear(6, 2)]))
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    grl = GradReverse.apply
    @compiled
    def step(x, y, d, lam):
        opt.zero_grad()
        h = torch.tanh(net[0](x))
        a, b = MulTwo.apply(h, h.roll(1, dims=1))
        s = StraightThrough.apply(b)
        c = Clip.apply(a, -0.3, 0.3)
        l1 = nn.functional.cross_entropy(net[1](a + s * 0.1 + c), y)
        l2 = nn.functional.cross_entropy(net[2](grl(h, lam)), d)
        (l1 + l2).backward()
        opt.step()
        return l1, l2
    res = []
    for k, b in enumerate((5, 5, 3, 5)):
        p = k / 4
        lam = 2. / (1. + np.exp(-10 * p)) - 1
        l1, l2 = step(f(b, 4), torch.from_numpy(rng.integers(0, 3, b)), torch.from_numpy(rng.integers(0, 2, b)), lam)
        res += [l1.item(), l2.item()]
    a = f(3).double().requires_grad_(); bb = f(3).double().requires_grad_()
    ok = torch.autograd.gradcheck(lambda a, b: MulTwo.apply(a, b), (a, bb))
    return [res, list(net.parameters()), [p.grad for p in net.parameters()], ok]
