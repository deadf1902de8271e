"""Every op of torch's database that jitgrad has, on the database's sample inputs: values, dtypes, shapes, gradients.

The database is `torch.testing._internal.common_methods_invocations.op_db`; it needs the packages torch and expecttest.
What may differ stands in torch_differences.txt.
"""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="torch is not installed: its op database is not compared")
pytest.importorskip("expecttest", reason="expecttest is not installed: torch's op database does not import without it")

from tests.oracles.torch_database import failures, one_failure, ops_with_our_name, samples, torch
from tests.oracles.torch_differences import Difference, listed_differences

pytestmark = pytest.mark.peers

OPS = ops_with_our_name()
DIFFERENCES = listed_differences()
LEAST_OPS = 400  # fewer: a name has got lost


def lines_about(name: str, *, compiled: bool = False) -> list[Difference]:
    return [line for line in DIFFERENCES if line.is_about(name) and (line.how == "compiled") == compiled]


@pytest.mark.parametrize("name", list(OPS))
def test_as_in_torch(name: str) -> None:
    """Every sample agrees or is listed, and every line that names the op is needed."""
    lines = lines_about(name)
    found = list(failures(OPS[name]))

    unexplained = [failure for failure in found if not any(line.covers(failure) for line in lines)]
    assert not unexplained, "\n".join(map(str, unexplained[:5]))
    idle = [line for line in lines if name in line.ops and not any(line.covers(failure) for failure in found)]
    assert not idle, f"no sample of {name} needs {idle}: remove the op from the line"


@pytest.mark.parametrize("name", list(OPS))
def test_compiled_as_in_torch(name: str) -> None:
    """One sample under ``@jg.jit``, of those on which eager agrees with torch, with its gradients."""
    op = OPS[name]
    dtype = torch.float64 if torch.float64 in op.dtypes else torch.int64
    given = samples(op, dtype, op.supports_autograd and dtype == torch.float64, first=40)
    middle = len(given) // 2
    for sample in given[middle:] + given[:middle]:
        if one_failure(op, sample, dtype) is None:
            failure = one_failure(op, sample, dtype, compiled=True)
            lines = lines_about(name, compiled=True)
            assert failure is None or any(line.covers(failure) for line in lines), str(failure)
            assert failure is not None or not lines, f"{name} needs {lines} no longer: remove it"
            return


def test_number_of_ops() -> None:
    assert len(OPS) >= LEAST_OPS


def test_lines_name_ops_of_the_database() -> None:
    unknown = {op for line in DIFFERENCES for op in line.ops if "*" not in op} - set(OPS)

    assert not unknown, f"torch_differences.txt names {sorted(unknown)}, which is not in the database or not in jitgrad"


def test_general_lines_are_needed() -> None:
    idle = [line for line in DIFFERENCES if line.general and line.how != "compiled"]
    for op in OPS.values():
        if not idle:
            break
        for failure in failures(op):
            idle = [line for line in idle if not line.covers(failure)]

    assert not idle
