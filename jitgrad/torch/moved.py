"""Modules that have other places in torch: ``from jitgrad.torch.nn.modules.utils import _pair``."""

from __future__ import annotations

from collections.abc import Mapping

_LAYERS = (
    "activation adaptive batchnorm channelshuffle container conv distance dropout flatten fold instancenorm lazy linear loss "
    "module normalization padding pixelshuffle pooling rnn sparse transformer upsampling"
)
_OPTIMIZERS = "adadelta adagrad adam adamax adamw asgd nadam radam rmsprop rprop sgd"
_FAMILIES = "half_cauchy half_normal multinomial relaxed_bernoulli relaxed_categorical studentT"
# name below jitgrad.torch -> name below jitgrad
MOVED: Mapping[str, str] = {
    "autograd.functional": "torch.derivatives", "fft": "numpy.torch_fft", "linalg": "numpy.linalg",
    "special": "scipy.special", "nn.modules": "nn",
    **{f"nn.modules.{name}": "nn" for name in _LAYERS.split()},
    "nn.modules.batchnorm": "nn.norm", "nn.modules.loss": "nn.losses", "nn.modules.utils": "torch.tuples",
    "nn.utils.clip_grad": "nn.utils",
    **{f"optim.{name}": "optim" for name in _OPTIMIZERS.split()},
    **{f"utils.data.{name}": "utils.data" for name in ("dataset", "dataloader", "sampler")},
    **{f"distributions.{name}": "distributions" for name in _FAMILIES.split()},
}  # fmt: skip
