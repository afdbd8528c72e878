"""Damaged texts: valid ones with characters or pieces changed, random bytes, deep nesting, towers of lets."""

from __future__ import annotations

from random import Random

PIECES = (
    "(", ")", ",", "=", "|", "->", "{", "}", "[2]", '"', "name=", "k=2", "let x = conv\n", "shared ", "start ",
    "level a: ",
    "constrain Cell connected", "constrain halvings(2)", "choice(", "pick(", "on(", "src=1", "conv", "Sequential(",
    "Residual(", "1e9", "-3", "true", "(3, 5)", "\n",
    "\t", "#", "\\", "\0", "é", "x1", "Op", "999999999999999999999",
)  # fmt: skip


def damaged(text: str, rng: Random) -> str:
    """Return a text with a few random changes."""
    for _ in range(rng.choice((1, 1, 1, 2, 4, 8))):
        at = rng.randrange(len(text) + 1)
        draw = rng.random()
        if draw < 0.25:
            text = text[:at] + text[at + rng.randint(1, 6) :]
        elif draw < 0.6:
            text = text[:at] + rng.choice(PIECES) + text[at:]
        elif draw < 0.75:
            other = rng.randrange(len(text) + 1)
            text = text[:at] + text[other : other + rng.randint(1, 20)] + text[at:]
        elif draw < 0.9:
            text = text[:at] + chr(rng.choice((rng.randrange(32, 127), rng.randrange(0x250)))) + text[at + 1 :]
        else:
            text = text.replace(rng.choice("(),=|"), rng.choice("(),=|"), 1)
    return text


def noise(rng: Random) -> str:
    """Return random bytes read as Latin-1, or a random row of pieces."""
    if rng.random() < 0.5:
        return rng.randbytes(rng.randrange(80)).decode("latin-1")
    return " ".join(rng.choice(PIECES) for _ in range(rng.randrange(30)))


def nested(rng: Random) -> str:
    """Return a text that nests deeply, sometimes without its end."""
    depth = rng.choice((10, 100, 3_000))
    opening = rng.choice(("Sequential(", "Given(", "(", "choice(", "conv(kernel=(", "pick(", "Repeat("))
    return opening * depth + rng.choice(("conv", "", "1", "x")) + ")" * rng.choice((depth, depth - 1, depth + 1, 0))


def tower(rng: Random) -> str:
    """Return lets that double again and again, sometimes beyond every limit."""
    height = rng.choice((5, 64, 6_000))
    lines = [f"let x{n} = Parallel(x{n - 1}, x{n - 1})" for n in range(1, height)]
    return "\n".join(["let x0 = conv", *lines, rng.choice((f"x{height - 1}", f"Sequential(x{height - 1}, y)", ""))])
