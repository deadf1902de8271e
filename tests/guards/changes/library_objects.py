"""Objects of jitgrad's own classes that hold tensors and change between two calls."""

from __future__ import annotations

import jitgrad as jg
from jitgrad.distributions import Independent, Normal
from jitgrad.utils.data import Subset, TensorDataset
from tests.guards.changes import new_table

CASES, case = new_table()


@case
def a_parameter_of_a_distribution():
    base = Normal(jg.zeros(3), jg.ones(3))
    return lambda x: base.log_prob(x), lambda: setattr(base, "loc", jg.ones(3))


@case
def a_parameter_of_a_distribution_within_another():
    base = Independent(Normal(jg.zeros(3), jg.ones(3)), 1)
    return lambda x: base.log_prob(x), lambda: base.base_dist.scale.mul_(2.0)


@case
def tensors_of_a_data_set():
    data = TensorDataset(jg.ones((4, 3)))
    return lambda x: x * data[1][0], lambda: setattr(data, "tensors", (jg.zeros((4, 3)),))


@case
def indices_of_a_part_of_a_data_set():
    data = Subset(TensorDataset(jg.arange(4.0)), [1, 2])
    return lambda x: x * data[0][0], lambda: data.indices.__setitem__(0, 3)
