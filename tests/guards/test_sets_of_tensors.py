"""A set of tensors stands for the attributes that tensors cannot have, such as ``p.no_weight_decay``."""

from __future__ import annotations

from typing import Any

import jitgrad as jg
from jitgrad import nn


def test_what_a_set_holds_is_noticed() -> None:
    weight, bias = nn.Parameter(jg.ones(2)), nn.Parameter(jg.ones(2))
    no_decay = {bias}

    @jg.jit(backend="python")
    def decayed(x: Any) -> Any:
        return [x * (p if p in no_decay else 0.5 * p) for p in (weight, bias)]

    one = jg.ones(2)
    assert [x[0].item() for x in decayed(one)] == [0.5, 1.0]
    no_decay.add(weight)
    assert [x[0].item() for x in decayed(one)] == [1.0, 1.0]
    no_decay.clear()
    assert [x[0].item() for x in decayed(one)] == [0.5, 0.5]
