"""A name that does not exist is an error that says what was meant, or what to use."""

from __future__ import annotations

import pytest

import jitgrad as jg


@pytest.mark.parametrize(
    ("module", "name", "advice"),
    [
        (jg, "compile", "jitgrad.jit"),
        (jg.lax, "psum", "there is one device"),
        (jg, "random", "jitgrad.jax.random.*manual_seed.*Generator"),
        (jg, "tree_map", "tree_util"),
        (jg.tree_util, "tree_mapp", "did you mean 'tree_map'"),
        (jg, "pmap", "one device"),
        (jg, "make_jaxpr", "graph"),
        (jg.numpy.random, "PRNGKey", "manual_seed"),
        (jg.numpy.random, "split", "Generator"),
        (jg.func, "jacref", "did you mean 'jacrev'"),
        (jg, "sofmax", "did you mean 'softmax'"),
        (jg.nn, "Linaer", "did you mean 'Linear'"),
        (jg.nn, "DistributedDataParallel", "one process"),
        (jg.nn.functional, "cross_entorpy", "did you mean 'cross_entropy'"),
        (jg.optim, "Adamw", "did you mean 'Adam"),
    ],
)
def test_missing_names_say_what_to_use(module: object, name: str, advice: str) -> None:
    with pytest.raises(AttributeError, match=rf"jitgrad.* has no '{name}'.*{advice}"):
        getattr(module, name)
    assert not hasattr(module, name)


def test_names_that_resemble_nothing_get_no_advice() -> None:
    with pytest.raises(AttributeError, match=r"^jitgrad has no 'zzzz'$"):
        _ = jg.zzzz  # type: ignore[attr-defined]


def test_an_unknown_option_of_jit_lists_the_others() -> None:
    with pytest.raises(TypeError, match=r"@jit has no option 'chek' \(did you mean 'check'\?\): it takes .*backend"):
        jg.jit(lambda x: x, chek="off")
    with pytest.raises(TypeError, match=r"@jit has no option 'donate_argnums' \(use donate=\)"):
        jg.jit(lambda x: x, donate_argnums=0)
    with pytest.raises(TypeError, match="@jit has no option 'mode'"):
        jg.jit(mode="fast")
