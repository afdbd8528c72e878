"""Python pickles that hold arrays, numbers, texts, lists and dictionaries - and nothing else.

A pickle is a program. This reader gives it no function to call: arrays and dtypes are rebuilt here from their parts,
every other global is refused.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eclose.algebra.errors import RequestError
from eclose.tasks.checks import one_line

if TYPE_CHECKING:
    from numpy.typing import NDArray

KINDS = frozenset("biuf")


class _DType:
    """A dtype in the making: `dtype("u1", ...)` followed by its state, which holds the byte order."""

    def __init__(self, kind: Any, *_: Any):
        self.kind = kind.decode("ascii") if isinstance(kind, bytes) else str(kind)
        self.order = "="

    def __setstate__(self, state: Any) -> None:
        order = state[1]
        self.order = order.decode("ascii") if isinstance(order, bytes) else str(order)

    def numpy(self) -> Any:
        import numpy as np

        found = np.dtype(self.kind)
        if found.kind not in KINDS:
            raise pickle.UnpicklingError(f"an array of {self.kind}")
        order: Any = self.order
        return found.newbyteorder(order) if self.order in "<>" else found


class _Array:
    """An array in the making: empty, until its state gives shape, dtype and bytes."""

    def __init__(self) -> None:
        self.value: NDArray[Any] | None = None

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, fortran, raw = state
        self.value = _from_bytes(raw, dtype, shape, "F" if fortran else "C")


def _from_bytes(raw: Any, dtype: Any, shape: Any, order: str) -> NDArray[Any]:
    import numpy as np

    if isinstance(raw, str):
        raw = raw.encode("latin-1")
    if not isinstance(raw, bytes | bytearray | pickle.PickleBuffer) or not isinstance(dtype, _DType):
        raise pickle.UnpicklingError("an array whose content is no plain block of numbers")
    block: Any = raw
    return np.frombuffer(block, dtype=dtype.numpy()).reshape(tuple(int(size) for size in shape), order=order)  # type: ignore[call-overload]


def _reconstruct(kind: Any, shape: Any, code: Any) -> _Array:
    return _Array()


def _frombuffer(raw: Any, dtype: Any, shape: Any, order: Any) -> _Array:
    found = _Array()
    found.value = _from_bytes(raw, dtype, shape, order if order in ("C", "F") else "C")
    return found


def _scalar(dtype: Any, raw: Any) -> Any:
    return _from_bytes(raw, dtype, (1,), "C")[0].item()


def _encode(text: Any, encoding: Any) -> bytes:
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1", b"latin1"):
        raise pickle.UnpicklingError("an unusual text encoding")
    return text.encode("latin-1")


def _nothing() -> bytes:
    return b""  # how protocol 2 writes an empty array's bytes


_CORES = ("numpy.core", "numpy._core")
_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): "ndarray",  # only ever an argument of _reconstruct
    ("numpy", "dtype"): _DType,
    ("_codecs", "encode"): _encode,
    ("__builtin__", "bytes"): _nothing,
    **{(f"{core}.multiarray", "_reconstruct"): _reconstruct for core in _CORES},
    **{(f"{core}.multiarray", "scalar"): _scalar for core in _CORES},
    **{(f"{core}.numeric", "_frombuffer"): _frombuffer for core in _CORES},
}


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        found = _ALLOWED.get((module, name))
        if found is None:
            raise pickle.UnpicklingError(f"the global {module}.{name}")
        return found

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError("a reference outside the file")


def read_pickle(path: Path) -> dict[str, Any]:
    """Return the dictionary that a pickle of arrays and plain values holds, its keys as texts.

    Raises:
        RequestError: the file is damaged, holds anything else, or asks for a function to be called.
    """
    try:
        with path.open("rb") as file:
            content = _Reader(file, encoding="bytes").load()
    except Exception as error:  # a damaged pickle raises almost anything
        raise RequestError(
            f"{path} is no pickle of plain arrays: it holds or ends in {one_line(error)}; fetch it again"
        ) from None
    if not isinstance(content, dict):
        raise RequestError(f"{path} holds a {type(content).__name__} where a dictionary was expected")
    return {
        key.decode("latin-1") if isinstance(key, bytes) else str(key): _plain(value) for key, value in content.items()
    }


def _plain(value: Any) -> Any:
    if isinstance(value, _Array):
        return value.value
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    return value


__all__ = ["read_pickle"]
