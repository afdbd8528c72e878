"""The converter of the official NAS-Bench-101 file, on files written here from the formats' descriptions."""

import base64
import json
import random
import struct
from itertools import permutations

import numpy as np
import pytest

from eclose.algebra.errors import RequestError
from eclose.spaces.nasbench101 import read_nb101
from eclose.tabular.nasbench101 import PAIRS, cell, cell_hash, convert, read
from eclose.tabular.records import masked_checksums

# A cell of the official file, with the hash that it has there.
MATRIX = [
    [0, 1, 0, 0, 1, 1, 0],
    [0, 0, 1, 0, 0, 0, 0],
    [0, 0, 0, 1, 0, 0, 1],
    [0, 0, 0, 0, 0, 1, 0],
    [0, 0, 0, 0, 0, 1, 0],
    [0, 0, 0, 0, 0, 0, 1],
    [0, 0, 0, 0, 0, 0, 0],
]
LABELS = ["input", "conv3x3-bn-relu", "maxpool3x3", "conv3x3-bn-relu", "conv3x3-bn-relu", "conv1x1-bn-relu", "output"]
HASH = "00005c142e6f48ac74fdcf73e3439874"


# A writer of its own: bit by bit for the checksum, field by field for the protocol buffer.


def crc32c(data):
    remainder = 0xFFFFFFFF
    for byte in data:
        for bit in range(8):
            high = (remainder ^ (byte >> bit)) & 1
            remainder >>= 1
            if high:
                remainder ^= 0x82F63B78
    return remainder ^ 0xFFFFFFFF


def masked(checksum):
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) % 2**32


def framed(data):
    length = len(data).to_bytes(8, "little")
    return b"".join([length, struct.pack("<I", masked(crc32c(length))), data, struct.pack("<I", masked(crc32c(data)))])


def varint(number):
    groups = [number >> shift & 127 for shift in range(0, max(number.bit_length(), 1), 7)]
    return bytes([group | 128 for group in groups[:-1]] + groups[-1:])


def block(number, content):
    return bytes([number << 3 | 2]) + varint(len(content)) + content


def metrics(parameters, evaluations, noise=b""):
    message = b""
    for epoch, seconds, train, validation, test in evaluations:
        numbers = enumerate((epoch, seconds, train, validation, test), 1)
        body = b"".join(bytes([number << 3 | 1]) + struct.pack("<d", value) for number, value in numbers)
        message += block(1, body + block(6, b"/model.ckpt-1234"))
    return message + noise + bytes([2 << 3]) + varint(parameters) + bytes([3 << 3 | 1]) + struct.pack("<d", 1.5)


def row(name, epochs, matrix, labels, message):
    digits = "".join(str(entry) for line in matrix for entry in line)
    return json.dumps([name, epochs, digits, ",".join(labels), base64.b64encode(message).decode()]).encode()


def evaluations(rng, epochs):
    """Return the three evaluations of a run; accuracies are of 9,984 images, in single precision."""
    shares = [[float(np.float32(rng.randrange(9985) / 9984)) for _ in range(3)] for _ in range(3)]
    seconds = sorted(float(np.float32(rng.uniform(0, 2000))) for _ in range(3))
    return [(epochs * half / 2, seconds[half], *shares[half]) for half in range(3)]


def random_cell(rng):
    count = rng.randint(2, 7)
    matrix = [[0] * count for _ in range(count)]
    for start in range(count):
        for end in range(start + 1, count):
            matrix[start][end] = int(end == start + 1 or rng.random() < 0.3)
    inner = [rng.choice(("conv3x3-bn-relu", "conv1x1-bn-relu", "maxpool3x3")) for _ in range(count - 2)]
    return matrix, ["input", *inner, "output"]


@pytest.fixture
def rows():
    """Forty cells with three runs each at two budgets, in no order."""
    rng, made = random.Random(0), []
    for number in range(40):
        matrix, labels = (MATRIX, LABELS) if number == 0 else random_cell(rng)
        name = HASH if number == 0 else f"{rng.getrandbits(128):032x}"
        parameters = 8_555_530 if number == 0 else rng.randrange(1, 50_000_000)
        for epochs in (4, 108):
            made += [(name, epochs, matrix, labels, parameters, evaluations(rng, epochs)) for _ in range(3)]
    rng.shuffle(made)
    return made


def written(path, rows):
    path.write_bytes(
        b"".join(framed(row(n, e, m, o, metrics(p, runs, noise=block(15, b"new")))) for n, e, m, o, p, runs in rows)
    )
    return path


def test_the_checksum_is_the_one_of_the_standard():
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA  # RFC 3720, B.4
    rng = random.Random(1)
    data = [rng.randbytes(rng.choice((0, 1, 7, 200))) for _ in range(50)]
    assert masked_checksums(data) == [masked(crc32c(item)) for item in data]


def test_every_row_comes_back(rows, tmp_path):
    found = convert(written(tmp_path / "some.tfrecord", rows), tmp_path / "table")
    assert (found.path, found.cells, found.runs, found.epochs) == (tmp_path / "table.npz", 40, len(rows), (4, 108))
    columns = read(found.path)
    names = [bytes(each).hex() for each in columns["hash"]]
    assert names == list(dict.fromkeys(each[0] for each in rows))  # in the order of the file
    assert (np.diff(columns["cell"]) >= 0).all()
    for number, name in enumerate(names):
        runs = [each for each in rows if each[0] == name]
        assert cell(columns, number) == (runs[0][2], runs[0][3])
        assert columns["parameters"][number] == runs[0][4]
        mine = columns["cell"] == number
        assert columns["epochs"][mine].tolist() == [each[1] for each in runs]
        assert columns["seconds"][mine].tolist() == [[half[1] for half in each[5][1:]] for each in runs]
        assert columns["accuracies"][mine].tolist() == [[list(half[2:]) for half in each[5][1:]] for each in runs]


def test_single_precision_is_used_only_where_nothing_is_lost(tmp_path):
    for seconds, precision in ((2.5, np.float32), (0.1, np.float64)):
        runs = [(0.0, 0.0, 0.0, 0.0, 0.0)] + 2 * [(1.0, seconds, 0.5, 0.5, 0.5)]
        source = written(tmp_path / "one.tfrecord", [(HASH, 108, MATRIX, LABELS, 1, runs)])
        columns = read(convert(source, tmp_path / "one.npz").path)
        assert columns["seconds"].dtype == precision
        assert columns["seconds"][0, 0] == seconds


def test_a_cell_of_the_table_is_a_term(rows, tmp_path):
    columns = read(convert(written(tmp_path / "some.tfrecord", rows), tmp_path / "table.npz").path)
    number = [bytes(each).hex() for each in columns["hash"]].index(HASH)
    assert read_nb101(*cell(columns, number)) == read_nb101(MATRIX, LABELS)


def test_cells_are_found_by_the_official_hash():
    assert cell_hash(MATRIX, LABELS) == HASH
    for order in permutations(
        range(1, 6)
    ):  # the same cell with its vertices in any other order that is upper triangular
        order = [0, *order, 6]
        matrix = [[MATRIX[start][end] for end in order] for start in order]
        if all(not matrix[start][end] for start in range(7) for end in range(start + 1)):
            assert cell_hash(matrix, [LABELS[vertex] for vertex in order]) == HASH
    other = [*LABELS[:1], "conv1x1-bn-relu", *LABELS[2:]]
    assert cell_hash(MATRIX, other) != HASH


def test_edges_have_a_bit_each():
    assert len(PAIRS) == 21
    assert PAIRS[0] == (0, 1)
    assert PAIRS[-1] == (5, 6)


@pytest.mark.parametrize("kept", [5, 100, -1, -30])
def test_a_truncated_file_is_refused_with_the_record(rows, tmp_path, kept):
    source = written(tmp_path / "some.tfrecord", rows[:9])
    whole = source.read_bytes()
    last = len(whole) - len(framed(row(*rows[8][:4], metrics(*rows[8][4:], noise=block(15, b"new")))))
    source.write_bytes(whole[: last + kept] if kept > 0 else whole[:kept])
    with pytest.raises(RequestError, match=f"record 8 at byte {last:,} is damaged: the file ends"):
        convert(source, tmp_path / "table.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["some.tfrecord"]


def test_every_flipped_bit_is_noticed(rows, tmp_path):
    source = written(tmp_path / "some.tfrecord", rows[:3])
    whole = source.read_bytes()
    first = len(framed(row(*rows[0][:4], metrics(*rows[0][4:], noise=block(15, b"new")))))
    second = len(framed(row(*rows[1][:4], metrics(*rows[1][4:], noise=block(15, b"new")))))
    rng = random.Random(2)
    for place in [*range(first, first + 16), *rng.sample(range(first + 16, first + second), 40)]:
        changed = bytearray(whole)
        changed[place] ^= 1 << rng.randrange(8)
        source.write_bytes(changed)
        with pytest.raises(RequestError, match=f"record 1 at byte {first:,} is damaged"):
            convert(source, tmp_path / "table.npz")


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (b"\xff\xfe", "not JSON"),
        (b'{"a": 1}', "not \\[hash"),
        (row("x" * 32, 108, MATRIX, LABELS, metrics(1, 3 * [(0.0,) * 5])), "hash of a cell"),
        (row(HASH, 0, MATRIX, LABELS, metrics(1, 3 * [(0.0,) * 5])), "0 epochs"),
        (row(HASH, 108, MATRIX, LABELS, metrics(1, 2 * [(0.0,) * 5])), "2 evaluations, not three"),
        (row(HASH, 108, MATRIX, LABELS, metrics(1, 3 * [(0.0,) * 5])[:-4]), "no protocol buffer, or end too early"),
        (row(HASH, 108, MATRIX, LABELS, metrics(1, 3 * [(0.0, 0.0, 1.0, float("nan"), 1.0)])), "lacks its time"),
        (row(HASH, 108, MATRIX, [*LABELS[:5], "conv7x7", "output"], metrics(1, 3 * [(0.0,) * 5])), "conv7x7"),
        (row(HASH, 108, MATRIX[:6], LABELS, metrics(1, 3 * [(0.0,) * 5])), "49 digits"),
        (
            row(HASH, 108, [[*MATRIX[0]], [1, *MATRIX[1][1:]], *MATRIX[2:]], LABELS, metrics(1, 3 * [(0.0,) * 5])),
            "backwards",
        ),
        (json.dumps([HASH, 108, "01" + "00", "input,output", "%%"]).encode(), "base 64"),
    ],
)
def test_a_record_that_is_no_row_is_named(rows, tmp_path, broken, message):
    source = written(tmp_path / "some.tfrecord", rows[:2])
    source.write_bytes(source.read_bytes() + framed(broken))
    with pytest.raises(RequestError, match=f"record 2 is no row of NAS-Bench-101: .*{message}"):
        convert(source, tmp_path / "table.npz")
    assert not (tmp_path / "table.npz").exists()


def test_a_failed_conversion_leaves_an_earlier_table_alone(rows, tmp_path):
    source = written(tmp_path / "some.tfrecord", rows)
    table = convert(source, tmp_path / "table.npz").path
    before = table.read_bytes()
    source.write_bytes(source.read_bytes()[:-1])
    with pytest.raises(RequestError):
        convert(source, table)
    assert table.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["some.tfrecord", "table.npz"]


def test_what_is_no_table_or_file_is_said(tmp_path):
    with pytest.raises(RequestError, match="google-research/nasbench"):
        convert(tmp_path / "absent.tfrecord", tmp_path / "table.npz")
    (tmp_path / "empty.tfrecord").touch()
    with pytest.raises(RequestError, match="holds no records"):
        convert(tmp_path / "empty.tfrecord", tmp_path / "table.npz")
    (tmp_path / "table.npz").write_bytes(b"PK\x03\x04 no archive")
    with pytest.raises(RequestError, match="cannot be read"):
        read(tmp_path / "table.npz")
    np.savez(tmp_path / "other.npz", a=np.zeros(2))
    with pytest.raises(RequestError, match="convert the official file"):
        read(tmp_path / "other.npz")


def test_progress_is_told(tmp_path):
    data = framed(row(HASH, 108, MATRIX, LABELS, metrics(1, 3 * [(0.0, 0.0, 1.0, 1.0, 1.0)])))
    (tmp_path / "many.tfrecord").write_bytes(data * 20_001)
    told = []
    found = convert(tmp_path / "many.tfrecord", tmp_path / "many.npz", told.append)
    assert told == [10_000, 20_000]
    assert (found.cells, found.runs) == (1, 20_001)
