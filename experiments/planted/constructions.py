"""Two constructions whose best architecture is known: a planted truth, and a trap of skip connections.

A construction is data and a space that are made for each other. It knows no strategy and no search.

Both label every position of an image, so that a few hundred small images say a great deal, and both are drawn anew for
every seed: a result over seeds is one over data sets as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

import eclose as ec

SIZE = 8  # of the images, in pixels
CHANNELS = 8  # of every operation
Array = np.ndarray


@dataclass(frozen=True)
class Construction:
    """A space with its data.

    Attributes:
        name: of the study.
        edges: the alternatives of every edge, as terms.
        right: the right alternative of each edge; where that is not said, what is counted is skip connections.
        network: the whole network around one operation (or rule) for each edge.
        task: the data that belong to a seed.
        inside: takes the operations out of a whole network again.
    """

    name: str
    edges: tuple[tuple[str, ...], ...]
    right: tuple[str, ...] | None
    network: Callable[[Sequence[str]], str]
    task: Callable[[int], ec.Task]
    inside: Callable[[ec.Term], Sequence[ec.Term]]

    def space(self, *, reverse: bool = False) -> ec.Space:
        """Return the space; `reverse` lists the alternatives of every edge the other way round."""
        rules = [f"E{number}" for number in range(len(self.edges))]
        lines = [f"Net -> {self.network(rules)}"]
        for rule, alternatives in zip(rules, self.edges, strict=True):
            lines.append(f"{rule} -> {' | '.join(reversed(alternatives) if reverse else alternatives)}")
        return ec.Space.from_grammar("\n".join(lines) + "\n", name=f"planted-{self.name}")

    def chosen(self, term: ec.Term | str) -> tuple[int, ...]:
        """Return the numbers of the alternatives that a network has, edge by edge, in the order of `edges`."""
        found = self.inside(ec.parse(str(term)))
        return tuple(
            [ec.parse(text) for text in alternatives].index(operation)
            for alternatives, operation in zip(self.edges, found, strict=True)
        )

    def term(self, chosen: Sequence[int]) -> str:
        """Return the network of some alternatives."""
        return self.network([alternatives[index] for alternatives, index in zip(self.edges, chosen, strict=True)])

    @property
    def truth(self) -> tuple[int, ...]:
        """The numbers of the right alternatives."""
        assert self.right is not None, f"{self.name} has no planted truth"
        return tuple(alternatives.index(text) for alternatives, text in zip(self.edges, self.right, strict=True))

    def count(self, chosen: Sequence[int]) -> int:
        """Return how many edges are right; of the trap, how many are skip connections."""
        wanted = self.truth if self.right is not None else tuple(edge.index(SKIP) for edge in self.edges)
        return sum(index == sought for index, sought in zip(chosen, wanted, strict=True))


def moved(images: Array, down: int, right: int) -> Array:
    """Return what stands `down` rows below and `right` columns right of every position; zeros outside."""
    reach = max(abs(down), abs(right))
    padded = np.pad(images, ((0, 0), (0, 0), (reach, reach), (reach, reach)))
    height, width = images.shape[2:]
    return padded[:, :, reach + down : reach + down + height, reach + right : reach + right + width]


# Planted truth: bit k of a position's label is seen by one alternative of edge k and by no other in the network.

TRUTH_TRAIN, TRUTH_TEST = 768, 256
TRUTH_INPUTS = 4  # channels of an image
FLIPPED = 0.1  # of the bits are wrong, so nothing scores above 90
OFFSETS: tuple[tuple[int, int] | None, ...] = ((0, 1), (1, 0), (0, 2), (2, 0), None)
"""Where bit k looks: this far to both sides, or at the position itself but regardless of the sign."""


def linear(kernel: str, dilation: str = "") -> str:
    """Return a convolution without activation, so that a network of such convolutions alone is linear."""
    return f'conv(kernel={kernel}, order="conv-norm"{f", dilation={dilation}" if dilation else ""})'


BESIDE, ABOVE = linear("(1, 3)"), linear("(3, 1)")  # the position and its neighbours in the row, in the column
BESIDE_2, ABOVE_2 = linear("(1, 3)", "(1, 2)"), linear("(3, 1)", "(2, 1)")  # two away
BESIDE_3, ABOVE_3 = linear("(1, 3)", "(1, 3)"), linear("(3, 1)", "(3, 1)")  # three away, where no bit looks
POINT = linear("1")

TRUTH_EDGES = (
    (BESIDE, POINT, "id", ABOVE_3, "noise"),
    ("id", "noise", ABOVE, POINT, BESIDE_3),
    (POINT, ABOVE_3, "noise", "id", BESIDE_2),
    ("noise", ABOVE_2, BESIDE_3, POINT, "id"),
    ("id", POINT, "noise", "abs", BESIDE_3),
)
TRUTH_RIGHT = (BESIDE, ABOVE, BESIDE_2, ABOVE_2, "abs")


def truth_network(operations: Sequence[str]) -> str:
    """Return the network with an operation on each edge: side by side on a stem that sees single positions."""
    inner = ", ".join(operations)
    return f'Sequential(stem(channels={CHANNELS}, kernel=1), Parallel({inner}, merge="concat"), head)'


def truth_task(seed: int) -> ec.Task:
    """Return images of white noise with five bits at every position."""
    random = np.random.default_rng([1, seed])
    images = random.standard_normal((TRUTH_TRAIN + TRUTH_TEST, TRUTH_INPUTS, SIZE, SIZE)).astype(np.float32)
    bits = []
    for offset in OFFSETS:
        if offset is None:
            value = np.abs(np.einsum("c,nchw->nhw", random.standard_normal(TRUTH_INPUTS), images))
        else:
            sides = (offset, (-offset[0], -offset[1]))
            value = sum(np.einsum("c,nchw->nhw", random.standard_normal(TRUTH_INPUTS), moved(images, *side))
                        for side in sides)  # fmt: skip
        bits.append((value > np.median(value)) ^ (random.random(value.shape) < FLIPPED))
    labels = np.stack(bits, axis=1).astype(np.float32)
    return ec.Task(
        (images[:TRUTH_TRAIN], labels[:TRUTH_TRAIN]), None, (images[TRUTH_TRAIN:], labels[TRUTH_TRAIN:]),
        output=ec.Map(len(OFFSETS)), loss="binary-cross-entropy", metric="binary-accuracy",
    )  # fmt: skip


TRUTH = Construction(
    "truth", TRUTH_EDGES, TRUTH_RIGHT, truth_network, truth_task, lambda term: term.children[1].children
)


# Skip trap: half of what is to be known is linear and kept by a skip connection; a convolution has to be trained first.

SKIP, CONVOLUTION = "id", "sep_conv_3x3"
TRAP_TRAIN, TRAP_TEST = 512, 256
TRAP_INPUTS = 2
TRAP_EDGES = ((SKIP, CONVOLUTION),) * 4
REACH = 2  # how far the second bit looks


def trap_network(operations: Sequence[str]) -> str:
    """Return the network with an operation on each edge of a chain, as in S2 without the cells."""
    return f"Sequential(stem(channels={CHANNELS}), {', '.join(operations)}, head)"


def trap_task(seed: int) -> ec.Task:
    """Return images of white noise with four classes at every position, of two bits.

    The first bit is the sign of a linear function of the position, which the stem and the head alone can learn. The
    second says whether the magnitudes two columns away are larger than those two rows away, which no linear network
    can tell better than by chance: the images are symmetric.
    """
    random = np.random.default_rng([2, seed])
    images = random.standard_normal((TRAP_TRAIN + TRAP_TEST, TRAP_INPUTS, SIZE, SIZE)).astype(np.float32)
    first = np.einsum("c,nchw->nhw", random.standard_normal(TRAP_INPUTS), images)
    beside = sum(np.abs(moved(images, 0, side)) for side in (REACH, -REACH))
    above = sum(np.abs(moved(images, side, 0)) for side in (REACH, -REACH))
    second = (beside - above).sum(axis=1)
    labels = (2 * (first > 0) + (second > 0)).astype(np.int64)
    return ec.Task(
        (images[:TRAP_TRAIN], labels[:TRAP_TRAIN]), None, (images[TRAP_TRAIN:], labels[TRAP_TRAIN:]),
        output=ec.Map(4), loss="cross-entropy", metric="accuracy",
    )  # fmt: skip


TRAP = Construction("trap", TRAP_EDGES, None, trap_network, trap_task, lambda term: term.children[1:-1])

STUDIES = {"truth": TRUTH, "trap": TRAP}

__all__ = ["CONVOLUTION", "SKIP", "STUDIES", "TRAP", "TRUTH", "Construction"]
