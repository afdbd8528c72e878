"""The table of NAS-Bench-201: what every one of its 15,625 cells scored on three data sets.

The files hold counts of correctly classified images, so that every accuracy is exact. They are mapped into memory and
shared by all tasks of a process. `data/nasbench201/README.md` says where the numbers come from.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from eclose.algebra.errors import RequestError, TermError, did_you_mean
from eclose.algebra.terms import Term
from eclose.spaces.nasbench_strings import OPERATIONS, nb201_cell, nb201_operations

FOLDER = Path(__file__).parent / "data" / "nasbench201"
SPACE = "nasbench201"
CELLS = 15_625
EPOCHS = (12, 200)
PARTS = ("validation", "test")
HARDWARE = (
    "edgegpu_latency",
    "edgegpu_energy",
    "raspi4_latency",
    "edgetpu_latency",
    "pixel3_latency",
    "eyeriss_latency",
    "eyeriss_energy",
    "eyeriss_arithmetic_intensity",
    "fpga_latency",
    "fpga_energy",
)


@dataclass(frozen=True)
class DataSet:
    """One data set of the table.

    Attributes:
        name: as in task names.
        title: for people.
        images: how many the accuracy of each part is measured on.
        short_runs: training runs behind the 12-epoch accuracy of each part.
    """

    name: str
    title: str
    images: tuple[int, int]
    short_runs: tuple[int, int] = (1, 1)


DATA_SETS = (
    DataSet("cifar10", "CIFAR-10", (25_000, 10_000), (2, 1)),
    DataSet("cifar100", "CIFAR-100", (5_000, 5_000)),
    DataSet("imagenet16-120", "ImageNet16-120", (3_000, 3_000)),
)
NAMES = tuple(data_set.name for data_set in DATA_SETS)


class Table:
    """What the benchmark measured, by row; `row` finds the row of a cell.

    Rows are in the benchmark's own order, so a row's number is the official index of its architecture. Cells that
    compute the same function were trained one by one and have rows of their own.
    """

    def row(self, cell: Term) -> int:
        """Return a cell's row, its official index."""
        found = self._rows_of_cells.get(cell)
        if found is None:
            try:
                operations = nb201_operations(cell)
            except TermError as error:
                raise RequestError(f"the table holds the cells of the space {SPACE!r} only: {error}") from None
            code = 0
            for operation in operations:
                code = code * len(OPERATIONS) + OPERATIONS.index(operation)
            found = self._rows_of_cells[cell] = self._rows[code]
        return found

    def cell(self, row: int) -> Term:
        """Return the cell with an official index."""
        if not 0 <= row < CELLS:
            raise RequestError(f"the table has the rows 0 to {CELLS - 1:,}, not {row:,}")
        code, operations = int(self._cells[row]), list[str]()
        for _ in range(6):
            code, last = divmod(code, len(OPERATIONS))
            operations.append(OPERATIONS[last])
        return nb201_cell(operations[::-1])

    def accuracy(self, data_set: str, part: str, epochs: int) -> Any:
        """Return the accuracies of all rows in percent, averaged over training runs.

        Args:
            data_set: one of `NAMES`.
            part: `"validation"` or `"test"`.
            epochs: 12 or 200.
        """
        which, side, budget = self._data_set(data_set), PARTS.index(part), EPOCHS.index(epochs)
        described = DATA_SETS[which]
        runs: Any = described.short_runs[side] if epochs == EPOCHS[0] else self.runs.astype(int)
        return 100 * self._correct[4 * which + 2 * budget + side] / (runs * described.images[side])

    def training_seconds(self, data_set: str, epochs: int) -> Any:
        """Return the seconds that training took, for all rows; a short budget costs its share of the long one's."""
        return self._seconds[self._data_set(data_set)] * epochs / EPOCHS[-1]

    def hardware(self, data_set: str, quantity: str) -> Any:
        """Return a latency (ms), an energy (mJ) or an intensity of all rows on a device; NaN where unmeasured."""
        if quantity not in HARDWARE:
            hint = did_you_mean(quantity, HARDWARE) or f" (known: {', '.join(HARDWARE)})"
            raise RequestError(f"the table has no {quantity!r}{hint}")
        return self._hardware[len(HARDWARE) * self._data_set(data_set) + HARDWARE.index(quantity)]

    def single_runs(self, data_set: str, row: int) -> list[float]:
        """Return the 200-epoch accuracies of a row's training runs.

        On CIFAR-10 they are of the validation part. On the others they are of the validation and the test part
        together, so a search must not see them.
        """
        which = self._data_set(data_set)
        images = DATA_SETS[which].images[0] * (1 if which == 0 else 2)
        start, stop = self._offsets[row], self._offsets[row + 1]
        return [100 * int(count) / images for count in self._single_runs[which, start:stop]]

    def _data_set(self, name: str) -> int:
        if name not in NAMES:
            hint = did_you_mean(name, NAMES) or f" (known: {', '.join(NAMES)})"
            raise RequestError(f"the table has no data set {name!r}{hint}")
        return NAMES.index(name)

    # The files

    @cached_property
    def runs(self) -> Any:
        """How many training runs the 200-epoch accuracies of each row average."""
        return _mapped("runs")

    @cached_property
    def _cells(self) -> Any:
        return _mapped("cells")

    @cached_property
    def _correct(self) -> Any:
        return _mapped("correct")

    @cached_property
    def _seconds(self) -> Any:
        return _mapped("seconds")

    @cached_property
    def _hardware(self) -> Any:
        return _mapped("hardware")

    @cached_property
    def _single_runs(self) -> Any:
        return _mapped("seed_correct")

    @cached_property
    def _offsets(self) -> Any:
        import numpy as np

        return np.concatenate([[0], np.cumsum(self.runs, dtype=int)])

    @cached_property
    def _rows(self) -> list[int]:
        """The row of each cell, by the number that its operations are in base five."""
        import numpy as np

        rows: list[int] = np.argsort(self._cells).tolist()
        return rows

    @cached_property
    def _rows_of_cells(self) -> dict[Term, int]:
        return {}


@cache
def table() -> Table:
    """Return the table; one for the whole process."""
    return Table()


def _mapped(name: str) -> Any:
    import numpy as np

    return np.load(FOLDER / f"{name}.npy", mmap_mode="r")


__all__ = ["CELLS", "DATA_SETS", "EPOCHS", "HARDWARE", "NAMES", "SPACE", "DataSet", "Table", "table"]
