"""Instructions for branches, loops, new containers and calls; see `jitgrad.guards.opcodes`."""

from __future__ import annotations

import dis
from collections.abc import Mapping, Sequence
from types import CodeType
from typing import Any

from jitgrad.guards.array_classes import instance_was_asked
from jitgrad.guards.attributes import NULL, UNKNOWN, read_attribute
from jitgrad.guards.calls import observe_call
from jitgrad.guards.class_attributes import guard_class_attribute
from jitgrad.guards.object_state import MISSING
from jitgrad.guards.opcodes import HANDLERS, SELF_AFTER, VERSION, on_opcodes
from jitgrad.guards.part_of import MadeFunction, PartOf, Parts, parts_of
from jitgrad.guards.questions import ask
from jitgrad.guards.reads import is_container
from jitgrad.guards.shadow import Handler, ShadowFrame, Unrepeatable

# --- branches and loops -------------------------------------------------------------------------------------


@on_opcodes(*[n for n in dis.opmap if n.startswith("POP_JUMP_")])
def _pop_jump(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    value = frame.pop()
    if "NONE" not in i.opname:
        frame.truth(value)


@on_opcodes("JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP")
def _jump_or_pop(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    frame.truth(frame.peek())
    frame.later(lambda offset: frame.pop() if offset == after else None)


@on_opcodes("GET_ITER", "GET_YIELD_FROM_ITER")
def _get_iter(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    value = frame.pop()
    frame.push(frame.iterate(value))
    frame.expect_method(value, "__iter__")


@on_opcodes("FOR_ITER")
def _for_iter(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    item = frame.peek()
    if parts_of(item) is not None and not isinstance(item, PartOf):  # the iterator of a comprehension
        item = frame.iterate(item)
        frame.replace(1, item)
    frame.yielded = item if isinstance(item, PartOf) else UNKNOWN
    frame.iterating = True
    frame.expect_method(item, "__next__")

    def arrive(offset: int) -> None:
        if offset == after:
            frame.push(frame.yielded)
        elif VERSION < (3, 14):
            frame.pop()

    frame.later(arrive)


@on_opcodes("END_FOR", "POP_ITER", "POP_TOP", "POP_EXCEPT")
def _pop_top(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    if i.opname == "END_FOR" and VERSION == (3, 12):
        frame.pop()
    frame.pop()


@on_opcodes("GET_LEN")
def _get_len(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    frame.contents.length(frame.peek(), frame.origin())
    frame.push(UNKNOWN)


@on_opcodes("UNPACK_SEQUENCE", "UNPACK_EX")
def _unpack(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    value, arg = frame.pop(), i.arg or 0
    count = arg if i.opname == "UNPACK_SEQUENCE" else (arg & 0xFF) + (arg >> 8) + 1
    item = frame.iterate(value) if value is not UNKNOWN and not isinstance(value, Parts) else UNKNOWN
    parts = value.values if isinstance(value, Parts) else value if isinstance(value, tuple | list) else ()
    if len(parts) != count or i.opname == "UNPACK_EX":
        parts = (frame.iterate(value) if isinstance(value, Parts) else item,) * count
    frame.pushed = count
    for part in reversed(parts):
        frame.push(part)


@on_opcodes("MATCH_SEQUENCE", "MATCH_MAPPING")
def _match_kind(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    frame.push(UNKNOWN)


@on_opcodes("MATCH_CLASS")
def _match_class(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    names, cls, subject = frame.pop(), frame.pop(), frame.pop()
    fields = (*getattr(cls, "__match_args__", ())[: i.arg or 0], *(names if isinstance(names, tuple) else ()))
    if isinstance(cls, type):
        instance_was_asked(subject, cls)
        guard_class_attribute(frame.reads, cls, "__match_args__", frame.origin())
    for name in fields:
        frame.attribute(subject, name)
    frame.push(UNKNOWN)


@on_opcodes("MATCH_KEYS")
def _match_keys(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    subject = frame.peek(2)
    if is_container(subject) or isinstance(subject, PartOf):
        frame.iterate(subject)
    values = PartOf((subject,), 0) if isinstance(subject, dict) else subject
    frame.push(values if isinstance(values, PartOf) else UNKNOWN)


# --- building -----------------------------------------------------------------------------------------------


@on_opcodes("BUILD_TUPLE", "BUILD_LIST", "BUILD_SET", "BUILD_STRING", "BUILD_SLICE")
def _build(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    values = frame.popn(i.arg or 0)
    if i.opname == "BUILD_SET":
        _refuse_keys(frame, values)
    plain = all(isinstance(v, (int, str, float, slice, type(None), type(Ellipsis), tuple)) for v in values)
    if i.opname == "BUILD_SLICE" and plain:
        frame.push(slice(*values))
    elif i.opname == "BUILD_TUPLE" and plain:
        frame.push(tuple(values))
    elif i.opname == "BUILD_STRING":
        frame.push(next((v for v in values if isinstance(v, Unrepeatable)), UNKNOWN))
    else:
        frame.push(Parts(tuple(values)))


@on_opcodes("BUILD_MAP", "BUILD_CONST_KEY_MAP")
def _build_map(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    count = i.arg or 0
    values = frame.popn(2 * count if i.opname == "BUILD_MAP" else count + 1)
    if i.opname == "BUILD_MAP":
        _refuse_keys(frame, values[::2])
    frame.push(Parts(tuple(values)))


def _refuse_keys(frame: ShadowFrame, keys: Sequence[Any]) -> None:
    """A set or a dict compares its keys."""
    for key in keys:
        if isinstance(key, Unrepeatable):
            frame.refuse(key)


@on_opcodes("LIST_EXTEND", "SET_UPDATE", "DICT_UPDATE", "DICT_MERGE", "LIST_APPEND", "SET_ADD")
def _extend(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    value = frame.pop()
    if i.opname == "SET_ADD":
        _refuse_keys(frame, [value])
    given: tuple[Any, ...] = (value,)
    if not i.opname.endswith(("APPEND", "ADD")) and value is not UNKNOWN:
        item = frame.iterate(value)
        given = tuple(value.values()) if isinstance(value, dict) else tuple(value) if isinstance(value, list | tuple) else (item,)
    if isinstance(target := frame.peek(i.arg or 1), Parts):
        frame.replace(i.arg or 1, Parts((*target.values, *given)))


@on_opcodes("MAP_ADD")
def _map_add(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    key, _value = frame.popn(2)
    _refuse_keys(frame, [key])


@on_opcodes("LIST_TO_TUPLE", "CALL_INTRINSIC_1", "FORMAT_SIMPLE", "CONVERT_VALUE")
def _replace_top(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    value = frame.pop()
    same = i.opname in ("LIST_TO_TUPLE", "CALL_INTRINSIC_1") and isinstance(value, Parts)
    frame.push(value if same or isinstance(value, Unrepeatable) else UNKNOWN)


@on_opcodes("FORMAT_VALUE", "FORMAT_WITH_SPEC")
def _format(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    if i.opname == "FORMAT_WITH_SPEC" or (i.arg or 0) & 4:
        frame.pop()
    value = frame.pop()
    ask(frame, format, [value])
    frame.push(value if isinstance(value, Unrepeatable) else UNKNOWN)


@on_opcodes("MAKE_FUNCTION", "SET_FUNCTION_ATTRIBUTE")
def _make_function(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    made = frame.pop()  # its code, or the function itself
    if i.opname == "SET_FUNCTION_ATTRIBUTE":
        frame.pop()
    elif VERSION < (3, 13):
        frame.popn((i.arg or 0).bit_count())
    frame.push(MadeFunction(made) if isinstance(made, CodeType) else made)


@on_opcodes("COPY")
def _copy(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    frame.copy(i.arg or 1)


@on_opcodes("SWAP")
def _swap(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    frame.swap(i.arg or 1)


# --- calls --------------------------------------------------------------------------------------------------


@on_opcodes("KW_NAMES")
def _kw_names(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    names = i.argval if isinstance(i.argval, tuple) else frame.frame.f_code.co_consts[i.arg or 0]
    frame.keywords = names


@on_opcodes("CALL", "CALL_KW")
def _call(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    keywords = frame.keywords
    if i.opname == "CALL_KW":
        names = frame.pop()
        keywords = names if isinstance(names, tuple) else ()
    frame.keywords = ()
    args = frame.popn(i.arg or 0)
    second, first = frame.pop(), frame.pop()
    if SELF_AFTER:
        callee, receiver = first, second
    elif first is NULL:
        callee, receiver = second, NULL
    else:  # a comprehension's function and its iterator
        callee, receiver = first, second
    frame.called, frame.given = callee, args
    result = observe_call(frame, callee, args if receiver is NULL else [receiver, *args], keywords)
    frame.push(UNKNOWN if result is None or result is MISSING else result)


@on_opcodes("CALL_FUNCTION_EX")
def _call_ex(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    mapping = frame.pop() if VERSION >= (3, 14) or (i.arg or 0) & 1 else NULL
    positional = frame.pop()
    second, first = frame.pop(), frame.pop()
    callee = first if SELF_AFTER and second is NULL else second
    args: list[Any] = []
    for value in (positional, mapping):
        if isinstance(value, Parts):
            args.extend(value.values)
        elif isinstance(value, dict | list | tuple):
            frame.iterate(value)
            args.extend(value.values() if isinstance(value, dict) else value)
        elif value is not UNKNOWN and value is not NULL:
            args.append(frame.iterate(value))
    frame.called, frame.given = callee, args
    result = observe_call(frame, callee, args)
    frame.push(UNKNOWN if result is None or result is MISSING else result)


@on_opcodes("RETURN_VALUE", "RETURN_CONST", "YIELD_VALUE")
def _return(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    value = frame.peek()
    frame.result = value if isinstance(value, Unrepeatable | Parts) and i.opname != "RETURN_CONST" else UNKNOWN


@on_opcodes("BEFORE_WITH")
def _before_with(frame: ShadowFrame, i: dis.Instruction, after: int) -> None:
    manager = frame.pop()
    frame.push(UNKNOWN)
    frame.push(UNKNOWN)
    if manager is not UNKNOWN and frame.reads.path_of(manager) is not None:
        read_attribute(frame.reads, type(manager), "__enter__", frame.origin())
        frame.expect_method(manager, "__enter__")


def handlers() -> Mapping[str, Handler]:
    """The handlers of all instructions, by name."""
    return HANDLERS
