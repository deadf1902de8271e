"""A variational autoencoder that learns to draw digits: encoder, noise, decoder and Adam in one compiled step.

    python examples/digits_vae.py [--picture digits.png] [--device cuda]

After D. P. Kingma and M. Welling, "Auto-encoding variational Bayes", 2013, on the 1,797 digits of 8 x 8 pixels that come
with scikit-learn. The noise is drawn inside the compiled step: the generator's state is part of the program.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

import jitgrad as jg
from jitgrad import nn, optim


class Autoencoder(nn.Module):
    """Images as codes of a few numbers, and back."""

    def __init__(self, pixels: int = 64, hidden: int = 256, code: int = 8) -> None:
        self.encoder = nn.Sequential(nn.Linear(pixels, hidden), nn.GELU(), nn.Linear(hidden, 2 * code))
        self.decoder = nn.Sequential(nn.Linear(code, hidden), nn.GELU(), nn.Linear(hidden, pixels))
        self.code = code

    def forward(self, images: Any) -> Any:
        """The negative evidence lower bound of ``images`` [n, pixels] from 0 to 1, a number."""
        parameters = self.encoder(images)
        mean, log_variance = parameters[:, : self.code], parameters[:, self.code :]
        drawn = mean + jg.exp(0.5 * log_variance) * jg.randn(*mean.shape, device=images.device)
        scores = self.decoder(drawn)
        misfit = jg.binary_cross_entropy_with_logits(scores, images, reduction="sum")
        divergence = -0.5 * (1 + log_variance - mean**2 - jg.exp(log_variance)).sum()
        return (misfit + divergence) / len(images)


def main(
    epochs: int = 60, batch: int = 128, every: int = 10, picture: str = "", device: str = "cpu"
) -> list[float]:
    """Returns the mean loss of every epoch."""
    images = (load_digits().data / 16).astype(np.float32)
    jg.manual_seed(0)
    generator = np.random.default_rng(0)
    model = Autoencoder().to(device)
    optimizer = optim.Adam(model.parameters(), lr=2e-3)

    @jg.jit
    def step(images: Any) -> Any:
        optimizer.zero_grad()
        loss = model(images)
        loss.backward()
        optimizer.step()
        return loss

    losses: list[float] = []
    start = time.perf_counter()
    for epoch in range(epochs):
        order = generator.permutation(len(images))[: len(images) // batch * batch].reshape(-1, batch)
        losses.append(float(np.mean([step(jg.tensor(images[rows]).to(device)).item() for rows in order])))
        if epoch % every == 0 or epoch == epochs - 1:
            print(f"epoch {epoch:3d}   loss {losses[-1]:.2f}   {time.perf_counter() - start:.1f} s")
    if picture:
        save(picture, model.to("cpu"))
    return losses


def save(path: str, model: Autoencoder) -> None:
    """A picture of 10 x 10 digits that the model draws from random codes."""
    import matplotlib.pyplot as plt

    with jg.no_grad():
        drawn = jg.sigmoid(model.decoder(jg.randn(100, model.code))).numpy()
    plt.imsave(path, drawn.reshape(10, 10, 8, 8).transpose(0, 2, 1, 3).reshape(80, 80), cmap="gray_r")
    print(f"saved {path}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--picture", default="", help="where to save a picture; needs matplotlib")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    options = parser.parse_args()
    main(picture=options.picture, device=options.device)
