"""Layers against torch's with the same parameters: names in the state, values and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitgrad as jg
from jitgrad import nn
from jitgrad.core.errors import ArgumentError, ShapeError
from tests.agreement import leaves

RNG = np.random.default_rng(2)
X, Y = RNG.normal(size=(5, 4)), RNG.normal(size=(5, 4))
SEQ, IMG = RNG.normal(size=(2, 4, 9)), RNG.normal(size=(2, 4, 7, 6))
IDS, LABELS, BITS = np.array([[0, 2, 1], [1, 1, 3]]), np.array([0, 3, 1, 2, 3]), (X > 0).astype(np.float64)
SIGNS = np.where(BITS > 0, 1.0, -1.0)
VOL = RNG.normal(size=(2, 4, 5, 7, 6))
LISTS = np.array([[1, 3, -1, 0], [2, -1, 1, 1], [-1, 0, 0, 0], [0, 1, 2, 3], [3, -1, 0, 0]])

TIME = RNG.normal(size=(6, 3, 4))
H2, H4 = RNG.normal(size=(2, 3, 5)), RNG.normal(size=(4, 3, 5))
NOT_ALLOWED = np.triu(np.ones((6, 6), bool), 1)
PADDED = np.array([[False] * 6, [False] * 4 + [True] * 2, [False] * 5 + [True]])


class _Calling:
    """Calls a layer in a given way; everything else is the layer's."""

    def __init__(self, layer: Any, call: Callable[..., Any]) -> None:
        self.layer, self.call = layer, call

    def __call__(self, *xs: Any) -> Any:
        return self.call(self.layer, *xs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.layer, name)

    def double(self) -> Any:
        self.layer.double()
        return self


def masked(m: Any) -> Any:
    """Attention with both masks."""
    layer = m.MultiheadAttention(4, 2, batch_first=True)
    return _Calling(layer, lambda f, x, pad, no: f(x, x, x, key_padding_mask=pad, attn_mask=no))


def per_head(m: Any) -> Any:
    """Attention of other widths, with a floating mask per head, and weights per head."""
    layer = m.MultiheadAttention(4, 2, kdim=3, vdim=5, bias=False)
    return _Calling(layer, lambda f, q, k, v, a: f(q, k, v, attn_mask=a, average_attn_weights=False))


def with_more_keys(m: Any) -> Any:
    """Attention with a learned key and one of zeros, and both masks."""
    layer = m.MultiheadAttention(4, 2, add_bias_kv=True, add_zero_attn=True)
    return _Calling(layer, lambda f, x, pad, no: f(x, x, x, key_padding_mask=pad, attn_mask=no))


LAYERS: dict[str, tuple[Callable[[Any], Any], tuple[Any, ...]]] = {
    "Linear": (lambda m: m.Linear(4, 3), (X,)),
    "Embedding": (lambda m: m.Embedding(4, 3, padding_idx=1), (IDS,)),
    "Conv1d": (lambda m: m.Conv1d(4, 6, 3, stride=2, padding=1, groups=2), (SEQ,)),
    "Conv1d_circular": (lambda m: m.Conv1d(4, 2, 3, padding=2, padding_mode="circular", bias=False), (SEQ,)),
    "Conv2d": (lambda m: m.Conv2d(4, 6, (3, 2), padding=(1, 0), dilation=(1, 2)), (IMG,)),
    "Conv2d_same": (lambda m: m.Conv2d(4, 2, (2, 4), padding="same", padding_mode="reflect"), (IMG,)),
    "ConvTranspose1d": (lambda m: m.ConvTranspose1d(4, 6, 3, 2, 1, 1, groups=2), (SEQ,)),
    "ConvTranspose2d": (lambda m: m.ConvTranspose2d(4, 3, (3, 2), (2, 3), 1, (1, 2)), (IMG,)),
    "Conv3d": (lambda m: m.Conv3d(4, 6, (3, 2, 3), (2, 1, 3), (1, 0, 2), (1, 2, 1), groups=2), (VOL,)),
    "Conv3d_replicate": (lambda m: m.Conv3d(4, 2, 2, padding="same", padding_mode="replicate"), (VOL,)),
    "ConvTranspose3d": (lambda m: m.ConvTranspose3d(4, 6, (3, 2, 1), (2, 1, 3), (1, 0, 0), (1, 0, 2), 2), (VOL,)),
    "BatchNorm1d": (lambda m: m.BatchNorm1d(4), (X,)),
    "BatchNorm1d_sequences": (lambda m: m.BatchNorm1d(4, momentum=0.3), (SEQ,)),
    "BatchNorm2d": (lambda m: m.BatchNorm2d(4, affine=False), (IMG,)),
    "BatchNorm3d": (lambda m: m.BatchNorm3d(4), (IMG[..., None],)),
    "InstanceNorm1d": (lambda m: m.InstanceNorm1d(4), (SEQ,)),
    "InstanceNorm2d": (lambda m: m.InstanceNorm2d(4, affine=True), (IMG,)),
    "InstanceNorm3d": (lambda m: m.InstanceNorm3d(4, affine=True), (VOL,)),
    "LocalResponseNorm": (lambda m: m.LocalResponseNorm(3, 0.1, 0.6, 1.3), (IMG,)),
    "GroupNorm": (lambda m: m.GroupNorm(2, 4), (IMG,)),
    "LayerNorm": (lambda m: m.LayerNorm([7, 6]), (IMG,)),
    "pools": (lambda m: m.Sequential(m.MaxPool2d(2, 1, 1, ceil_mode=True), m.AvgPool2d(3, 2, 1, True, False)), (IMG,)),
    "pools1d": (lambda m: m.Sequential(m.MaxPool1d(2, 1), m.AvgPool1d(2)), (SEQ,)),
    "pools3d": (lambda m: m.Sequential(m.MaxPool3d((2, 3, 2), 1, (1, 0, 1)), m.AvgPool3d(2, 2, 1, True, False)), (VOL,)),
    "LPPool": (lambda m: m.Sequential(m.LPPool2d(2, (2, 3), 1), m.Flatten(2), m.LPPool1d(2.0, 2)), (IMG,)),
    "adaptive1d": (lambda m: m.Sequential(m.AdaptiveAvgPool1d(5), m.AdaptiveMaxPool1d(3)), (SEQ,)),
    "adaptive3d": (lambda m: m.Sequential(m.AdaptiveMaxPool3d((4, None, 5)), m.AdaptiveAvgPool3d(3)), (VOL,)),
    "padding": (
        lambda m: m.Sequential(m.ZeroPad2d((1, 0, 2, 1)), m.ConstantPad2d(1, 3.5), m.ReflectionPad2d(2), m.ReplicationPad2d(1)),
        (IMG,),
    ),
    "padding1d": (
        lambda m: m.Sequential(m.ZeroPad1d(1), m.ConstantPad1d((1, 2), -1.0), m.ReflectionPad1d(2), m.ReplicationPad1d((0, 1))),
        (SEQ,),
    ),
    "adaptive": (lambda m: m.Sequential(m.AdaptiveMaxPool2d((4, 5)), m.AdaptiveAvgPool2d(3)), (IMG,)),
    "padding3d": (
        lambda m: m.Sequential(m.ZeroPad3d(1), m.ConstantPad3d((1, 0, 2, 1, 0, 1), 2), m.ReflectionPad3d(1), m.CircularPad3d(1)),
        (VOL,),
    ),
    "padding_periodic": (lambda m: m.Sequential(m.CircularPad2d((1, 2, 0, 1)), m.Flatten(2), m.CircularPad1d(2)), (IMG,)),
    "padding_edges": (lambda m: m.ReplicationPad3d((1, 2, 0, 1, 2, 0)), (VOL,)),
    "columns": (lambda m: m.Sequential(m.Unfold((3, 2), 1, 1, 2), m.Fold((7, 6), (3, 2), 1, 1, 2)), (IMG,)),
    "channels": (lambda m: m.Sequential(m.PixelUnshuffle(2), m.ChannelShuffle(4)), (IMG[:, :, :6],)),
    "Upsample": (lambda m: m.Sequential(m.UpsamplingNearest2d(scale_factor=2), m.UpsamplingBilinear2d((9, 5))), (IMG,)),
    "AdaptiveMaxPool3d": (
        lambda m: _Calling(m.AdaptiveMaxPool3d((2, 3, 3), True), lambda f, x: (f(x)[0], f(x)[1] * 1.0)), (VOL,),
    ),
    "EmbeddingBag_max": (
        lambda m: m.EmbeddingBag(4, 3, mode="max", include_last_offset=True), (LABELS, np.array([0, 2, 2, 5]))),
    "Upsample3d": (lambda m: m.Upsample((3, 9, 5), mode="trilinear"), (VOL,)),
    "Bilinear": (lambda m: m.Bilinear(4, 4, 3), (X, Y)),
    "EmbeddingBag": (lambda m: m.EmbeddingBag(4, 3, padding_idx=1), (IDS,)),
    "EmbeddingBag_sum": (lambda m: m.EmbeddingBag(4, 3, mode="sum"), (LABELS, np.array([0, 2, 2]), X[:, 0])),
    "resizing": (lambda m: m.Sequential(m.PixelShuffle(2), m.Upsample(scale_factor=2, mode="bilinear")), (IMG,)),
    "shapes": (lambda m: m.Sequential(m.Flatten(1, 2), m.Unflatten(1, (2, -1)), m.Flatten()), (IMG,)),
    "dropout": (lambda m: m.Sequential(m.Conv1d(4, 4, 1), m.Dropout(0.0), m.Dropout1d(0.0, inplace=True)), (SEQ,)),
    "dropout3d": (lambda m: m.Sequential(m.Conv3d(4, 4, 1), m.Dropout3d(0.0), m.AlphaDropout(0.0)), (VOL,)),
    "dropout2d": (lambda m: m.Sequential(m.Conv2d(4, 4, 1), m.Dropout2d(0.0, True), m.SiLU(True)), (IMG,)),
    "in place": (
        lambda m: m.Sequential(m.Linear(4, 4), m.ReLU(True), m.Linear(4, 3), m.LeakyReLU(0.2, inplace=True)),
        (X,),
    ),
    "activations": (
        lambda m: m.Sequential(m.Hardshrink(0.1), m.Softshrink(0.05), m.Tanhshrink(), m.Threshold(-0.1, 0.2), m.Mish()),
        (X,),
    ),
    "gates": (lambda m: m.Sequential(m.GLU(), m.Softmin(dim=1), m.Hardtanh(0.1, 0.8), m.PReLU()), (X,)),
    "Softmax2d": (lambda m: m.Softmax2d(), (IMG,)),
    "similarity": (lambda m: m.CosineSimilarity(dim=0), (X, Y)),
    "distance": (lambda m: m.PairwiseDistance(1.0, keepdim=True), (X, Y)),
    "RNNCell": (lambda m: m.RNNCell(4, 5, nonlinearity="relu"), (X,)),
    "RNN": (lambda m: m.RNN(4, 5, 2, bidirectional=True), (TIME,)),
    "RNN_relu": (lambda m: m.RNN(4, 5, nonlinearity="relu", batch_first=True, bias=False), (TIME,)),
    "GRU": (lambda m: m.GRU(4, 5, num_layers=2, batch_first=True, bidirectional=True), (TIME,)),
    "GRU_state": (lambda m: m.GRU(4, 5, 2), (TIME, H2)),
    "LSTM": (lambda m: m.LSTM(4, 5, 2, batch_first=True), (TIME,)),
    "LSTM_alone": (lambda m: m.LSTM(4, 5, bidirectional=True), (TIME[:, 0],)),
    "LSTM_state": (lambda m: _Calling(m.LSTM(4, 5, 2, bidirectional=True), lambda f, x, h: f(x, (h, h * 2))), (TIME, H4)),
    "attention": (lambda m: _Calling(m.MultiheadAttention(4, 2), lambda f, x, y: f(x, y, y)), (TIME, TIME[:4])),
    "attention_alone": (lambda m: _Calling(m.MultiheadAttention(4, 1), lambda f, x: f(x, x, x)), (X,)),
    "attention_masks": (masked, (TIME.swapaxes(0, 1).copy(), PADDED, NOT_ALLOWED)),
    "attention_more_keys": (with_more_keys, (TIME, PADDED, NOT_ALLOWED)),
    "attention_widths": (per_head, (TIME, TIME[..., :3], H2.repeat(3, 0), RNG.normal(size=(6, 6, 6)))),
    "encoder layer": (lambda m: m.TransformerEncoderLayer(4, 2, 7, dropout=0.0), (TIME, NOT_ALLOWED)),
    "encoder": (
        lambda m: m.TransformerEncoder(
            m.TransformerEncoderLayer(4, 2, 7, 0.0, "gelu", batch_first=True, norm_first=True), 2, m.LayerNorm(4)
        ),
        (TIME,),
    ),
    "decoder layer": (lambda m: m.TransformerDecoderLayer(4, 2, 7, 0.0), (TIME, TIME[:4], NOT_ALLOWED)),
    "transformer": (lambda m: m.Transformer(4, 2, 1, 2, 7, 0.0), (TIME, TIME[:4])),
    "MSELoss": (lambda m: m.MSELoss(), (X, Y)),
    "L1Loss": (lambda m: m.L1Loss(reduction="sum"), (X, Y)),
    "SmoothL1Loss": (lambda m: m.SmoothL1Loss(beta=0.3), (X, Y)),
    "HuberLoss": (lambda m: m.HuberLoss(delta=0.3), (X, Y)),
    "CrossEntropyLoss": (lambda m: m.CrossEntropyLoss(ignore_index=2, label_smoothing=0.1), (X, LABELS)),
    "NLLLoss": (lambda m: m.NLLLoss(reduction="none"), (X, LABELS)),
    "BCELoss": (lambda m: m.BCELoss(), (1 / (1 + np.exp(-X)), BITS)),
    "BCEWithLogitsLoss": (lambda m: m.BCEWithLogitsLoss(), (X, BITS)),
    "KLDivLoss": (lambda m: m.KLDivLoss(reduction="batchmean"), (X, BITS * 0.3 + 0.1)),
    "CosineEmbeddingLoss": (lambda m: m.CosineEmbeddingLoss(0.1), (X, Y, SIGNS[:, 0])),
    "TripletMarginLoss": (lambda m: m.TripletMarginLoss(2.0, 1.0), (X, Y, X * Y)),
    "MarginRankingLoss": (lambda m: m.MarginRankingLoss(0.2), (X, Y, SIGNS)),
    "HingeEmbeddingLoss": (lambda m: m.HingeEmbeddingLoss(0.4), (X, np.where(BITS > 0, 1, -1))),
    "SoftMarginLoss": (lambda m: m.SoftMarginLoss(), (X, np.where(BITS > 0, 1, -1))),
    "MultiMarginLoss": (lambda m: m.MultiMarginLoss(p=2, margin=0.7), (X, LABELS)),
    "MultiLabelSoftMarginLoss": (lambda m: m.MultiLabelSoftMarginLoss(), (X, BITS)),
    "MultiLabelMarginLoss": (lambda m: m.MultiLabelMarginLoss(), (X, LISTS)),
    "TripletMarginWithDistanceLoss": (
        lambda m: m.TripletMarginWithDistanceLoss(distance_function=m.CosineSimilarity(), swap=True), (X, Y, X * Y + 1)
    ),
    "CTCLoss": (
        lambda m: _Calling(m.CTCLoss(blank=2, zero_infinity=True), lambda f, x, t: f(
            m.LogSoftmax(-1)(x), t, (5, 6, 2), (2, 1, 3))),
        (TIME, np.array([[0, 0, 1], [3, 1, 1], [0, 0, 1]])),
    ),
    "PoissonNLLLoss": (lambda m: m.PoissonNLLLoss(full=True), (X, np.abs(Y) * 3)),
    "GaussianNLLLoss": (lambda m: m.GaussianNLLLoss(), (X, Y, np.abs(X * Y) + 0.1)),
}


def results(module: Any, layer: Any, arrays: tuple[Any, ...]) -> list[Any]:
    """Results, gradients of floating inputs and parameters, and the state afterwards."""
    xs = [module.tensor(a) for a in arrays]
    learned = [x.requires_grad_() for x, a in zip(xs, arrays) if np.asarray(a).dtype.kind == "f"]
    outs = leaves(layer(*xs))
    total = sum((x * module.tensor(np.cos(np.arange(x.numel()).reshape(x.shape)))).sum() for x in outs)
    total.backward()
    grads = [x.grad for x in (*learned, *layer.parameters())]
    values = [*outs, *(g for g in grads if g is not None), *layer.state_dict().values()]
    return [x.detach().numpy() for x in values]


def same_layers(build: Callable[[Any], Any]) -> tuple[Any, Any]:
    """A layer of ours and of torch's, in float64 and with the parameters of the latter."""
    torch: Any = pytest.importorskip("torch")

    torch.manual_seed(0)
    theirs, ours = build(torch.nn).double(), build(nn).double()
    state = theirs.state_dict()
    assert list(ours.state_dict()) == list(state)
    assert [tuple(x.shape) for x in ours.state_dict().values()] == [tuple(x.shape) for x in state.values()]
    ours.load_state_dict({name: x.numpy().copy() for name, x in state.items()})
    return ours, theirs


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LAYERS)
def test_same_as_torch(name: str):
    torch: Any = pytest.importorskip("torch")
    build, arrays = LAYERS[name]
    ours, theirs = same_layers(build)

    for mode in ("train", "eval"):
        getattr(ours, mode)(), getattr(theirs, mode)()
        for x, y in zip(results(jg, ours, arrays), results(torch, theirs, arrays), strict=True):
            assert x.shape == y.shape
            np.testing.assert_allclose(x, y, rtol=3e-8, atol=1e-10)


# --- without torch -----------------------------------------------------------------------------------------------


def test_module_dict():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = nn.ModuleDict({"a": nn.Linear(2, 3), "b": nn.Linear(3, 1)})
            self.parts["c"] = nn.ReLU()

        def forward(self, x):
            for name in self.parts:
                x = self.parts[name](x)
            return x

    model = Model()

    assert list(model.state_dict()) == ["parts.a.weight", "parts.a.bias", "parts.b.weight", "parts.b.bias"]
    assert (len(model.parts), list(model.parts.keys())) == (3, ["a", "b", "c"])
    assert ("b" in model.parts, "d" in model.parts) == (True, False)
    assert [name for name, _ in model.parts.items()] == list(model.parts)
    assert jg.jit(model)(jg.ones(4, 2)).shape == (4, 1)
    del model.parts["c"]
    assert len(list(model.parameters())) == 4
    assert len(model.parts.values()) == 2
    with pytest.raises(ArgumentError, match="method"):
        model.parts["forward"] = nn.ReLU()
    with pytest.raises(ArgumentError, match="expected a Module"):
        model.parts["d"] = jg.relu
    with pytest.raises(KeyError):
        model.parts["d"]


def test_parameter_dict():
    weights = nn.ParameterDict({"a": jg.ones(2), "b": nn.Parameter(jg.zeros(3))})
    weights["c"] = jg.ones(1)

    assert list(weights) == weights.keys() == list(weights.state_dict()) == ["a", "b", "c"]
    assert [name for name, _ in weights.items()] == weights.keys() and len(weights.values()) == len(weights) == 3
    assert all(w.requires_grad for w in weights.parameters()) and "b" in weights
    del weights["b"]
    assert "b" not in weights and len(list(weights.parameters())) == 2
    assert jg.jit(lambda x: x * weights["a"])(jg.ones(2)).tolist() == [1.0, 1.0]
    with pytest.raises(KeyError):
        weights["b"]
    with pytest.raises(ArgumentError, match="method"):
        weights["keys"] = jg.ones(2)


def test_lists_of_modules_and_parameters():
    modules = nn.ModuleList([nn.Linear(2, 2)]).extend([nn.ReLU(), nn.Linear(2, 1)])
    modules[1] = nn.Tanh()
    weights = nn.ParameterList([jg.ones(2), nn.Parameter(jg.zeros(3))]).append(jg.ones(1))

    assert [type(m).__name__ for m in modules] == ["Linear", "Tanh", "Linear"]
    assert (len(weights), list(weights.state_dict()), weights[-1].shape) == (3, ["0", "1", "2"], (1,))
    assert [w.requires_grad for w in weights[:2]] == [True, True]


@pytest.mark.parametrize("layer", [nn.RNN(3, 4, 2), nn.GRU(3, 4, bidirectional=True), nn.LSTM(3, 4, 2)], ids=repr)
def test_sequences_are_steps_of_cells(layer: Any):
    cell = {nn.RNN: nn.RNNCell, nn.GRU: nn.GRUCell, nn.LSTM: nn.LSTMCell}[type(layer)](3, 4)
    cell.load_state_dict({name: layer.state_dict()[f"{name}_l0"] for name in cell.state_dict()})
    one = type(layer)(3, 4)
    one.load_state_dict({f"{name}_l0": x for name, x in cell.state_dict().items()})
    x = jg.randn(5, 2, 3)
    state = None
    for t in range(5):
        state = cell(x[t], state)

    out, last = jg.jit(one)(x)

    h = state[0] if isinstance(state, tuple) else state
    np.testing.assert_allclose(out[-1].detach().numpy(), h.detach().numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(leaves(last)[0][0].detach().numpy(), h.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_dropout_between_layers_in_training_only():
    layer = nn.LSTM(3, 4, 2, dropout=0.5)
    x = jg.randn(5, 2, 3)

    assert layer(x)[0].tolist() != layer(x)[0].tolist()
    layer.eval()
    assert layer(x)[0].tolist() == layer(x)[0].tolist()


def test_causal_encoders_do_not_look_ahead():
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    mask = nn.Transformer.generate_square_subsequent_mask(5)
    x = jg.randn(2, 5, 8)
    changed = x.clone()
    changed[:, 3:] = 0.0

    same = [layer(y, mask)[:, :3].tolist() == layer(y, is_causal=True)[:, :3].tolist() for y in (x, changed)]

    assert same == [True, True]
    assert layer(x, mask)[:, :3].tolist() == layer(changed, mask)[:, :3].tolist()
    assert layer(x, mask)[:, 3:].tolist() != layer(changed, mask)[:, 3:].tolist()


def test_embedding_from_pretrained():
    table = jg.tensor(RNG.normal(size=(4, 3)))

    frozen, learned = nn.Embedding.from_pretrained(table), nn.Embedding.from_pretrained(table, freeze=False)

    assert not frozen.weight.requires_grad
    assert learned.weight.requires_grad
    assert frozen(jg.tensor([1])).tolist() == table[1:2].tolist()


def test_padding_row_of_an_embedding_is_not_trained():
    layer = nn.Embedding(4, 2, padding_idx=0)
    layer(jg.tensor([0, 1, 0])).sum().backward()

    assert layer.weight[0].tolist() == [0.0, 0.0]
    assert layer.weight.grad.sum(dim=1).tolist() == [0.0, 2.0, 0.0, 0.0]


def test_weights_of_losses_move_and_are_not_saved():
    loss = nn.CrossEntropyLoss(weight=jg.tensor([1.0, 2.0])).double()

    assert loss.weight.dtype == jg.float64
    assert loss.state_dict() == {}


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: nn.MSELoss(reduction="avg"), ArgumentError, "mean, sum, none"),
        (lambda: nn.Conv1d(3, 4, 2, groups=2), ArgumentError, "Conv1d: 3 and 4 channels"),
        (lambda: nn.Conv1d(3, 4, 2, padding_mode="odd"), ArgumentError, "padding_mode"),
        (lambda: nn.BatchNorm1d(4)(jg.ones(2, 4, 3, 3)), ShapeError, "expected 2 or 3 axes"),
        (lambda: nn.RNN(3, 4, nonlinearity="sin"), ArgumentError, "nonlinearity"),
        (lambda: nn.GRU(3, 4, 0), ArgumentError, "num_layers=0"),
        (lambda: nn.GRU(3, 4)(jg.ones(5, 2, 4)), ShapeError, "the last of 3"),
        (lambda: nn.GRU(3, 4)(jg.ones(5, 2, 3), jg.ones(1, 4)), ShapeError, "first state must have shape"),
        (lambda: nn.MultiheadAttention(5, 2), ArgumentError, "does not divide into 2 heads"),
        (lambda: nn.TransformerEncoderLayer(4, 2, activation="sin"), ArgumentError, "'relu', 'gelu'"),
        (lambda: nn.Dropout2d(1.5), ArgumentError, "Dropout2d: a probability"),
    ],
)
def test_errors(call: Any, error: type[Exception], words: str):
    with pytest.raises(error, match=words):
        call()
