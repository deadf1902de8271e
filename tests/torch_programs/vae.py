"""A variational autoencoder in the style of PyTorch's own example; its noise comes from the default generator."""

import numpy as np
import torch
from torch import nn, optim
from torch.nn import functional as F


class VAE(nn.Module):
    def __init__(self, pixels: int, hidden: int, latent: int) -> None:
        super(VAE, self).__init__()
        self.fc1 = nn.Linear(pixels, hidden)
        self.fc21 = nn.Linear(hidden, latent)
        self.fc22 = nn.Linear(hidden, latent)
        self.fc3 = nn.Linear(latent, hidden)
        self.fc4 = nn.Linear(hidden, pixels)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        h3 = F.relu(self.fc3(z))
        return torch.sigmoid(self.fc4(h3))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 36))
        z = self.reparameterize(mu, logvar)
        return self.decode(z), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 36), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


def main(fill, compiled):
    torch.manual_seed(1)
    rng = np.random.default_rng(3)
    pictures = (rng.uniform(size=(60, 1, 6, 6)) < np.linspace(0.05, 0.95, 36).reshape(1, 1, 6, 6)).astype(np.float32)
    data = torch.from_numpy(pictures)
    model = VAE(36, 20, 2)
    fill(model)
    optimizer = optim.Adam(model.parameters(), lr=1e-2)

    def step(batch):
        optimizer.zero_grad()
        recon, mu, logvar = model(batch)
        loss = loss_function(recon, batch, mu, logvar)
        loss.backward()
        optimizer.step()
        return loss

    step = compiled(step)
    losses = []
    for _ in range(1, 11):
        model.train()
        train_loss = 0.0
        for batch in torch.chunk(data, 3, dim=0):
            train_loss += step(batch).item()
        losses.append(train_loss / len(data))
    return losses
