from functools import partial
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical
from torch.distributions.normal import Normal

def layer_init(layer, std=np.sqrt(2), bias_const=0.0):
    torch.nn.init.orthogonal_(layer.weight, std)
    torch.nn.init.constant_(layer.bias, bias_const)
    return layer

class Agent(nn.Module):
    def __init__(self, obs, act):
        super().__init__()
        self.critic = nn.Sequential(layer_init(nn.Linear(np.array((obs,)).prod(), 8)), nn.Tanh(), layer_init(nn.Linear(8, 1), std=1.0))
        self.actor = nn.Sequential(layer_init(nn.Linear(obs, 8)), nn.Tanh(), layer_init(nn.Linear(8, act), std=0.01))
        self.actor_logstd = nn.Parameter(torch.zeros(1, act))
    def get_value(self, x):
        return self.critic(x)
    def get_action_and_value(self, x, action=None):
        logits = self.actor(x)
        probs = Categorical(logits=logits)
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action), probs.entropy(), self.critic(x)
    def continuous(self, x, action):
        action_mean = self.actor(x)
        action_logstd = self.actor_logstd.expand_as(action_mean)
        action_std = torch.exp(action_logstd)
        probs = Normal(action_mean, action_std)
        return probs.log_prob(action).sum(1), probs.entropy().sum(1)

def update(agent, optimizer, mb_obs, mb_actions, mb_logprobs, mb_advantages, mb_returns, mb_values):
    _, newlogprob, entropy, newvalue = agent.get_action_and_value(mb_obs, mb_actions.long())
    logratio = newlogprob - mb_logprobs
    ratio = logratio.exp()
    with torch.no_grad():
        old_approx_kl = (-logratio).mean()
        approx_kl = ((ratio - 1) - logratio).mean()
        clipfrac = ((ratio - 1.0).abs() > 0.2).float().mean()
    mb_advantages = (mb_advantages - mb_advantages.mean()) / (mb_advantages.std(unbiased=True) + 1e-8)
    pg_loss1 = -mb_advantages * ratio
    pg_loss2 = -mb_advantages * torch.clamp(ratio, 1 - 0.2, 1 + 0.2)
    pg_loss = torch.max(pg_loss1, pg_loss2).mean()
    newvalue = newvalue.view(-1)
    v_loss_unclipped = (newvalue - mb_returns) ** 2
    v_clipped = mb_values + torch.clamp(newvalue - mb_values, -0.2, 0.2)
    v_loss_clipped = (v_clipped - mb_returns) ** 2
    v_loss_max = torch.max(v_loss_unclipped, v_loss_clipped)
    v_loss = 0.5 * v_loss_max.mean()
    entropy_loss = entropy.mean()
    clp, cent = agent.continuous(mb_obs, mb_obs[:, :3])
    loss = pg_loss - 0.01 * entropy_loss + v_loss * 0.5 - 0.01 * clp.mean() - 0.001 * cent.mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
    optimizer.step()
    return loss, approx_kl, clipfrac


def main(fill, compiled):
    rng = np.random.default_rng(0)
    device = torch.device("cpu")
    agent = fill(Agent(4, 3)).to(device)
    optimizer = optim.Adam(agent.parameters(), lr=2.5e-3, eps=1e-5)
    f = lambda *s: torch.FloatTensor(rng.normal(size=s)).to(device)
    b_obs, b_logprobs, b_advantages, b_returns, b_values = f(16, 4), -1.1 + 0.1 * f(16), f(16), f(16), f(16)
    b_actions = torch.Tensor([k % 3 for k in range(16)])

    step = compiled(partial(update, agent, optimizer))
    b_inds = np.arange(16)
    out = []
    for epoch in range(2):
        rng.shuffle(b_inds)
        for start in range(0, 16, 8):
            mb_inds = b_inds[start:start + 8]
            l, k, c = step(b_obs[mb_inds], b_actions[mb_inds], b_logprobs[mb_inds], b_advantages[mb_inds], b_returns[mb_inds], b_values[mb_inds])
            out += [l.item(), k.item(), c.item()]
    return out
