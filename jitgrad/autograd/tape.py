"""Tape: lists the ops recorded in a block, and runs backward through them."""

from __future__ import annotations

from contextvars import Token
from types import TracebackType
from typing import Any, Self

from jitgrad.autograd.backward import backward
from jitgrad.autograd.modes import enable_grad
from jitgrad.autograd.printing import Entry, Listing
from jitgrad.core.context import open_tapes
from jitgrad.core.errors import AutogradError
from jitgrad.core.tape_node import Node, edge_of
from jitgrad.core.tensor import Tensor


class Tape:
    """Lists the ops recorded while it is entered, in this thread. Tapes nest.

    It turns recording on, also within ``no_grad``. It keeps descriptions only. The graph lives as
    long as its results, and backward frees it as usual.
    """

    def __init__(self) -> None:
        self._listing = Listing()
        self._tokens: list[tuple[Token[tuple[Any, ...]], enable_grad]] = []

    def __enter__(self) -> Self:
        mode = enable_grad()
        mode.__enter__()
        self._tokens.append((open_tapes.set((*open_tapes.get(), self)), mode))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        token, mode = self._tokens.pop()
        open_tapes.reset(token)
        mode.__exit__(kind, error, trace)

    def record(self, node: Node, operands: tuple[Any, ...]) -> None:
        """List ``node``; called for every op that enters the history."""
        self._listing.add(node, operands)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The recorded ops, in execution order."""
        return tuple(self._listing.entries)

    def __len__(self) -> int:
        return len(self._listing.entries)

    def backward(
        self, loss: Tensor, grad: Any = None, *, retain_graph: bool = False, create_graph: bool = False
    ) -> None:
        """``loss.backward(grad)`` for a loss computed on this tape.

        Raises:
            AutogradError: ``loss`` was computed elsewhere.
        """
        if loss._requires_grad and not self._listing.knows(edge_of(loss)):
            raise AutogradError(
                f"tape.backward: this tensor {loss.aval} was not computed on this tape, which holds {len(self)} ops. "
                "Compute it inside the `with` block, or call loss.backward()."
            )
        backward(loss, grad, retain_graph=retain_graph, create_graph=create_graph)

    def to_dot(self) -> str:
        """The recorded graph in the language of Graphviz (``dot -Tsvg``)."""
        return self._listing.dot("tape")

    def __str__(self) -> str:
        count = len(self)
        return f"Tape of {count} op{'' if count == 1 else 's'}" + ("\n" + self._listing.text() if count else "")

    def __repr__(self) -> str:
        return f"<Tape of {len(self)} ops>"
