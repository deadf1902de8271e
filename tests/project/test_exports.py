"""The public names: they exist, nothing else is public, and the contract is kept."""

from __future__ import annotations

import inspect
import types
from pathlib import Path

import pytest

import jitgrad as jg
from jitgrad import nn, optim

TENSOR_METHODS = """
numpy item tolist detach clone to astype backward requires_grad_ retain_grad register_hook zero_grad sum mean prod max
min var std all any argmax argmin reshape exp log sqrt tanh sigmoid relu abs clip squeeze transpose T mT shape ndim size
dtype device requires_grad is_leaf grad grad_fn __array__ __array_ufunc__ __array_function__ __array_namespace__
__dlpack__ __matmul__ __getitem__ __setitem__
"""

CONTRACT = """
tensor asarray from_numpy from_dlpack set_default_dtype zeros ones full empty arange linspace eye zeros_like ones_like
full_like empty_like tril triu meshgrid
abs negative positive sign sqrt rsqrt reciprocal square exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan
sinh cosh tanh asinh acosh atanh sigmoid erf erfc floor ceil round trunc isnan isinf isfinite logical_not bitwise_invert
signbit
add subtract multiply divide floor_divide remainder fmod pow maximum minimum atan2 hypot copysign logaddexp nextafter
equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor bitwise_and bitwise_or
bitwise_xor bitwise_left_shift bitwise_right_shift where clip lerp
relu relu6 leaky_relu prelu elu selu celu silu mish gelu softplus softsign hardtanh hardsigmoid hardswish logsigmoid
softmax log_softmax
sum mean prod max min var std logsumexp all any argmax argmin cumulative_sum norm
reshape permute_dims transpose matrix_transpose expand_dims squeeze broadcast_to concat stack split unstack flip roll
repeat tile moveaxis pad take take_along_axis gather scatter_add index_add diagonal sort argsort topk nonzero unique
searchsorted concatenate cat arcsin
matmul dot vecdot outer tensordot einsum linear conv2d max_pool2d avg_pool2d batch_norm layer_norm rms_norm group_norm
embedding one_hot dropout
mse_loss l1_loss huber_loss smooth_l1_loss binary_cross_entropy binary_cross_entropy_with_logits cross_entropy nll_loss
kl_div hinge_loss cosine_embedding_loss triplet_margin_loss
manual_seed Generator rand randn randint normal uniform bernoulli randperm
Tape no_grad enable_grad inference_mode set_grad_enabled is_grad_enabled grad value_and_grad vjp jvp hvp jacobian
hessian checkpoint apply_op custom_op elementwise gradcheck gradgradcheck detect_anomaly print_graph
jit compare disable_jit set_num_threads get_num_threads set_flush_denormal memory_stats nn optim save load
"""

LAYERS = """
Module Parameter Linear Embedding Sequential LayerNorm RMSNorm BatchNorm2d Conv2d Dropout GRUCell LSTMCell ReLU GELU
Tanh Sigmoid SiLU Softmax
"""

OPTIMISERS = "SGD Adam AdamW RMSprop Adagrad LBFGS clip_grad_norm_"

JIT_METHODS = "explain kernels graph report cache_info clear why_retraced eager"


@pytest.mark.parametrize("name", CONTRACT.split())
def test_the_contract_names_it_and_it_exists(name: str):
    assert hasattr(jg, name)
    assert name in jg.__all__


@pytest.mark.parametrize("name", TENSOR_METHODS.split())
def test_tensors_have(name: str):
    assert name in dir(jg.Tensor)


@pytest.mark.parametrize("name", JIT_METHODS.split())
def test_compiled_functions_have(name: str):
    assert hasattr(jg.jit(lambda x: x), name)


def test_layers_and_optimisers():
    assert not [name for name in LAYERS.split() if not hasattr(nn, name)]
    assert not [name for name in OPTIMISERS.split() if not hasattr(optim, name)]


@pytest.mark.parametrize("module", [jg, nn, optim], ids=lambda module: module.__name__)
def test_all_is_what_is_public(module: types.ModuleType):
    public = {
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType) and name != "annotations"
    }
    listed = set(module.__all__)

    assert len(listed) == len(module.__all__), "a name is listed twice"
    assert public - listed == set(), "public, but not in __all__"
    assert not [name for name in listed if not hasattr(module, name)]


def test_public_functions_have_docstrings():
    public = {name: getattr(jg, name) for name in jg.__all__}

    assert not [name for name, f in public.items() if (inspect.isfunction(f) or inspect.isclass(f)) and not f.__doc__]


def test_the_version_is_that_of_the_citation() -> None:
    citation = Path(jg.__file__).parents[1] / "CITATION.cff"
    if not citation.exists():
        pytest.skip("the package is not in its repository")
    assert f"\nversion: {jg.__version__}\n" in citation.read_text()
