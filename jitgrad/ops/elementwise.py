"""Every elementwise function but the activations, under one roof."""

from __future__ import annotations

from jitgrad.ops.arithmetic import (
    ABS, ADD, ASTYPE, CLIP, CLIP_MAX, CLIP_MIN, COPYSIGN, DIVIDE, LERP, MAXIMUM, MINIMUM, MULTIPLY,
    NEGATIVE, POSITIVE, RECIPROCAL, RSQRT, SIGN, SQRT, SQUARE, SUBTRACT, abs, absolute, add, astype, clamp,
    clip, copysign, div, divide, lerp, maximum, minimum, mul, multiply, neg, negative, positive, reciprocal,
    rsqrt, sign, sqrt, square, sub, subtract, true_divide,
)
from jitgrad.ops.comparison import (
    BITWISE_AND, BITWISE_INVERT, BITWISE_LEFT_SHIFT, BITWISE_OR, BITWISE_RIGHT_SHIFT, BITWISE_XOR, EQUAL,
    GREATER, GREATER_EQUAL, ISFINITE, ISINF, ISNAN, LESS, LESS_EQUAL, LOGICAL_AND, LOGICAL_NOT, LOGICAL_OR,
    LOGICAL_XOR, NOT_EQUAL, SIGNBIT, WHERE, bitwise_and, bitwise_invert, bitwise_left_shift, bitwise_not,
    bitwise_or, bitwise_right_shift, bitwise_xor, eq, equal, ge, greater, greater_equal, gt, invert,
    isfinite, isinf, isnan, le, left_shift, less, less_equal, logical_and, logical_not, logical_or,
    logical_xor, lt, ne, not_equal, right_shift, signbit, where,
)
from jitgrad.ops.rounding import (
    CEIL, FLOOR, FLOOR_DIVIDE, FMOD, NEXTAFTER, REMAINDER, ROUND, TRUNC, ceil, fix, floor, floor_divide,
    fmod, mod, nextafter, remainder, rint, round, trunc,
)
from jitgrad.ops.transcendental import (
    EXP, EXP2, EXPM1, INTEGER_POW, LOG, LOG10, LOG1P, LOG2, LOGADDEXP, POW, SIGMOID, exp, exp2, expm1, log,
    log10, log1p, log2, logaddexp, pow, power, sigmoid,
)
from jitgrad.ops.trigonometric import (
    ACOS, ACOSH, ASIN, ASINH, ATAN, ATAN2, ATANH, COS, COSH, HYPOT, SIN, SINH, TAN, TANH, acos, acosh,
    arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh, asin, asinh, atan, atan2, atanh, cos, cosh,
    hypot, sin, sinh, tan, tanh,
)

__all__ = [
    "ABS", "ACOS", "ACOSH", "ADD", "ASIN", "ASINH", "ASTYPE", "ATAN", "ATAN2", "ATANH", "BITWISE_AND",
    "BITWISE_INVERT", "BITWISE_LEFT_SHIFT", "BITWISE_OR", "BITWISE_RIGHT_SHIFT", "BITWISE_XOR", "CEIL",
    "CLIP", "CLIP_MAX", "CLIP_MIN", "COPYSIGN", "COS", "COSH", "DIVIDE", "EQUAL", "EXP", "EXP2", "EXPM1",
    "FLOOR", "FLOOR_DIVIDE", "FMOD", "GREATER", "GREATER_EQUAL", "HYPOT", "INTEGER_POW", "ISFINITE",
    "ISINF", "ISNAN", "LERP", "LESS", "LESS_EQUAL", "LOG", "LOG10", "LOG1P", "LOG2", "LOGADDEXP",
    "LOGICAL_AND", "LOGICAL_NOT", "LOGICAL_OR", "LOGICAL_XOR", "MAXIMUM", "MINIMUM", "MULTIPLY", "NEGATIVE",
    "NEXTAFTER", "NOT_EQUAL", "POSITIVE", "POW", "RECIPROCAL", "REMAINDER", "ROUND", "RSQRT", "SIGMOID",
    "SIGN", "SIGNBIT", "SIN", "SINH", "SQRT", "SQUARE", "SUBTRACT", "TAN", "TANH", "TRUNC", "WHERE", "abs",
    "absolute", "acos", "acosh", "add", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2",
    "arctanh", "asin", "asinh", "astype", "atan", "atan2", "atanh", "bitwise_and", "bitwise_invert",
    "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil",
    "clamp", "clip", "copysign", "cos", "cosh", "div", "divide", "eq", "equal", "exp", "exp2", "expm1",
    "fix", "floor", "floor_divide", "fmod", "ge", "greater", "greater_equal", "gt", "hypot", "invert",
    "isfinite", "isinf", "isnan", "le", "left_shift", "lerp", "less", "less_equal", "log", "log10", "log1p",
    "log2", "logaddexp", "logical_and", "logical_not", "logical_or", "logical_xor", "lt", "maximum",
    "minimum", "mod", "mul", "multiply", "ne", "neg", "negative", "nextafter", "not_equal", "positive",
    "pow", "power", "reciprocal", "remainder", "right_shift", "rint", "round", "rsqrt", "sigmoid", "sign",
    "signbit", "sin", "sinh", "sqrt", "square", "sub", "subtract", "tan", "tanh", "true_divide", "trunc",
    "where",
]
