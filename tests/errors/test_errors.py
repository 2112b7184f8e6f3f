"""Every kernel in this folder is wrong; the comment at its wrong line says how it must be rejected.

    o.store(a + c)  # error TW002 at `c`: name 'c' is not defined

means: code TW002, at this line, the caret below ``c``, and a message with that text in it. A file whose call is what is wrong
has a function ``call``, which gets the arrays. `tests/wrong_expressions.py` has the kernels that differ in one expression only.
"""

import re
import textwrap
from pathlib import Path

import pytest

import wrong_expressions
from tilewright.diagnostics import KernelError
from tilewright.error_codes import codes
from tilewright.program import TensorSpec

HERE = Path(__file__).parent
EXAMPLES = {code: entry.example for code, entry in codes().items() if entry.example}
FILES = sorted(path for path in HERE.glob("*.py") if not path.name.startswith("test_"))
NAMES = [*(path.stem for path in FILES), *wrong_expressions.CASES]
MARK = re.compile(r"\s*# error TW\d+.*$", re.MULTILINE)
EXPECTED = re.compile(r"# error (TW\d+) at `(.*)`: (.*)$", re.MULTILINE)


def path_of(name, folder):
    """The file of a wrong kernel; those of one expression are written into ``folder``."""
    if name not in wrong_expressions.CASES:
        return HERE / f"{name}.py"
    path = folder / f"{name}.py"
    path.write_text(wrong_expressions.kernel_text(name))
    return path


def load(path):
    """Runs the file as a script would, so that the compiler finds its source in the ordinary way."""
    scope = {"__name__": path.stem, "__file__": str(path)}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    tensors = [TensorSpec(name=n, shape=(rows, cols), dtype=(*dtype, "bf16")[0]) for n, rows, cols, *dtype in scope["TENSORS"]]
    return scope["kernel"], scope.get("call") or scope["kernel"].compile, tensors


def as_arrays(tensors):
    import ml_dtypes
    import numpy

    kinds = {"bf16": ml_dtypes.bfloat16, "f32": numpy.float32, "i32": numpy.int32, "u32": numpy.uint32, "u16": numpy.uint16}
    return [numpy.zeros(tensor.shape, kinds[tensor.dtype]) for tensor in tensors]


@pytest.mark.parametrize("name", NAMES)
def test_rejected(name, tmp_path):
    path = path_of(name, tmp_path)
    marked = [(n, EXPECTED.search(line)) for n, line in enumerate(path.read_text().splitlines(), 1)]
    marked = [(n, found) for n, found in marked if found]
    assert len(marked) == 1, "one marked line per file"
    line, found = marked[0]
    code, caret, message = found.groups()

    _, call, tensors = load(path)
    with pytest.raises(KernelError) as caught:
        call(*as_arrays(tensors))
    first = caught.value.diagnostics[0]
    text = str(caught.value)
    assert (first.code, first.span.line) == (code, line), text
    assert Path(first.span.file) == path
    source = path.read_text().splitlines()[line - 1]
    assert source[first.span.column - 1 : first.span.end_column - 1].split("  #")[0] == caret, text
    assert message in first.message, text
    assert f"{line} | " in text and "^" in text
    assert first.help or first.notes, "an error says what to do"
    assert "Traceback" not in text


def test_there_are_enough():
    assert len(NAMES) >= 25


def test_codes_have_pages(tmp_path):
    for name in NAMES:
        (found,) = EXPECTED.finditer(path_of(name, tmp_path).read_text())
        assert len(codes()[found.group(1)].page) > 40


@pytest.mark.parametrize(
    ("name", "possible"),
    [
        ("reduction_by_short_name", ["ttl.math.reduce_sum"]),
        ("running_value_without_start", ["a value before", "ttl.block.fill"]),
        ("stored_sum_is_smaller", ["broadcast(x, dims=[1], shape=(2, 2))"]),
        ("attribute_of_arrays", ["ttl.block.transpose"]),
        ("dtype_of_op", ["bf16", "f32", "bfp8_b"]),
        ("dtype_of_bitwise_op", ["i32", "u32", "u16"]),
        ("typecast_missing", ["bf16", "bfp8_b", "f32", "u16"]),
        ("typecast_unknown", ["f32", "i32", "u32", "u16", "bfp8_b"]),
        ("scalar_shift_too_far", ["0", "31"]),
        ("scalar_decimals", ["0", "6"]),
        ("scalar_too_large_for_float", ["3.40282e+38"]),
        ("scalar_too_large_for_integer", ["0", "65535"]),
    ],
)
def test_possibilities_are_listed(name, possible, tmp_path):
    _, call, tensors = load(path_of(name, tmp_path))
    with pytest.raises(KernelError) as caught:
        call(*as_arrays(tensors))
    for word in possible:
        assert word in caught.value.diagnostics[0].help


# What the page of errors shows as wrong is refused with that code, and what it shows as mended compiles.


def hunks(example):
    """Lines before and after, of every part of an example."""
    for part in example.strip("\n").split("\n…\n"):
        lines = part.splitlines()
        yield [line[2:] for line in lines if line[:1] != "+"], [line[2:] for line in lines if line[:1] != "-"]


def place_of(text, before):
    """Where the lines stand in a text, blank lines and indentation left aside: first and last line, indentation."""
    lines = text.splitlines()
    wanted = [line.strip() for line in before if line.strip()]
    filled = [number for number, line in enumerate(lines) if line.strip()]
    for start in range(len(filled)):
        numbers = filled[start : start + len(wanted)]
        if [MARK.sub("", lines[number]).strip() for number in numbers] == wanted:
            first = lines[numbers[0]]
            return numbers[0], numbers[-1], len(first) - len(first.lstrip())
    return None


def mended(text, example):
    """The kernel with the example's change; None if it is about another kernel."""
    for before, after in hunks(example):
        found = place_of(text, before)
        if found is None:
            return None
        first, last, indent = found
        indent -= len(before[0]) - len(before[0].lstrip())
        lines = text.splitlines()
        lines[first : last + 1] = textwrap.indent("\n".join(after), " " * max(indent, 0)).splitlines()
        text = "\n".join(lines) + "\n"
    return MARK.sub("", text)


@pytest.mark.parametrize("code", EXAMPLES)
def test_the_wrong_one_is_refused_and_the_mended_one_compiles(code, tmp_path):
    """`test_errors` refuses the kernel that the wrong lines are from."""
    about = [path for path in FILES if any(found[1] == code for found in EXPECTED.finditer(path.read_text()))]
    texts = [text for path in about if (text := mended(path.read_text(), EXAMPLES[code])) is not None]
    assert texts, f"no kernel below tests/errors has the wrong lines of {code}"
    path = tmp_path / "mended.py"
    path.write_text(texts[0])
    _, call, tensors = load(path)
    call(*as_arrays(tensors))


def test_every_code_that_has_a_wrong_kernel_has_an_example():
    codes = {found[1] for path in FILES for found in EXPECTED.finditer(path.read_text())}
    assert codes - EXAMPLES.keys() == set()
