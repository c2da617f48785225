"""Layouts against NumPy, and the algebra's laws."""

from __future__ import annotations

import copy
import pickle
import random
import re
import xml.etree.ElementTree
from typing import Any, cast

import numpy as np
import oracle
import pytest

import tegula
from tegula import Layout, LayoutError, Tiler


def random_layouts(count: int, seed: int = 0) -> list[tuple[oracle.Tree, oracle.Tree]]:
    generator = random.Random(seed)
    return [oracle.random_layout(generator) for _ in range(count)]


def nested(depth: int) -> Any:
    tree: Any = 4
    for _ in range(depth):
        tree = (tree,)
    return tree


def flat(layout: Layout) -> np.ndarray:
    result: np.ndarray = layout(np.arange(layout.size()))
    return result


def test_text_shape_and_stride() -> None:
    for shape, stride in random_layouts(200):
        layout = Layout(shape, stride)
        assert str(layout) == f"{oracle.text(shape)}:{oracle.text(stride)}"
        assert Layout(str(layout)) == layout
        assert (layout.shape, layout.stride) == (shape, stride)
        assert layout.size() == np.prod(oracle.leaves(shape))
        assert eval(repr(layout)) == layout


def test_values() -> None:
    for shape, stride in random_layouts(200):
        layout = Layout(shape, stride)
        expected = oracle.values(shape, stride)
        np.testing.assert_array_equal(flat(layout), expected)
        np.testing.assert_array_equal(layout.table().ravel(order="F"), expected)
        assert layout.cosize() == 1 + expected.max()
        assert layout(len(expected) - 1) == expected[-1]


def test_values_by_mode() -> None:
    layout = Layout("(4,(2,3)):(6,(1,2))")
    table = layout.table()
    assert table.shape == (4, 6)
    assert layout(2, 3) == table[2, 3] == layout((2, (1, 1))) == layout(2, (1, 1))
    rows, columns = np.meshgrid(np.arange(4), np.arange(6), indexing="ij")
    np.testing.assert_array_equal(layout(rows, columns), table)
    np.testing.assert_array_equal(layout(np.arange(4), np.array(5)), table[:, 5])
    assert layout(np.int64(3)) == 18
    assert layout[1] == Layout("(2,3):(1,2)") == layout[-1]
    assert [mode.size() for mode in layout] == [4, 6]


def test_swizzled_layouts() -> None:
    layout = Layout("Sw<2,0,3> o (8,8):(8,1)")
    assert layout.is_swizzled and layout.swizzle == (2, 0, 3) and layout.offset == 0
    assert layout.unswizzled == Layout("(8,8):(8,1)")
    np.testing.assert_array_equal(flat(layout), oracle.swizzled(oracle.values((8, 8), (8, 1)), 2, 0, 3))
    assert sorted(flat(layout)) == list(range(64))


def test_coordinates() -> None:
    layout = Layout("(2,3):(1@1,2@0)")
    assert layout.axes == 2
    assert layout(1, 2) == (4, 1)
    np.testing.assert_array_equal(layout.table()[1, 2], [4, 1])
    with pytest.raises(LayoutError, match="coordinate strides"):
        layout.stride


@pytest.mark.parametrize(
    ("of_coordinates", "along"),
    [
        ("(4,8):(1@0,1@1)", ("(4,8):(1,0)", "(4,8):(0,1)")),
        ("((2,2),8):((1@0,2@0),-1@1)", ("((2,2),8):((1,2),0)", "((2,2),8):((0,0),-1)")),
        ("(4,(2,4)):(3@1,(1@0,2@2))", ("(4,(2,4)):(0,(1,0))", "(4,(2,4)):(3,(0,0))", "(4,(2,4)):(0,(0,2))")),
    ],
)
def test_coordinates_beyond_an_extent(of_coordinates: str, along: tuple[str, ...]) -> None:
    """Along each axis as a layout of offsets has it, in which a mode runs on along its last leaf."""
    layout, axes = Layout(of_coordinates), [Layout(text) for text in along]
    for coordinate in ((9, 2), (3, 9), (0, 31), (5, 17)):
        assert layout(*coordinate) == tuple(axis(*coordinate) for axis in axes)
    rows, columns = np.arange(9)[:, None], np.arange(17)
    by_arrays = layout(rows, columns)
    assert by_arrays.shape == (9, 17, len(axes))
    for i in range(9):
        assert [tuple(value) for value in by_arrays[i]] == [layout(i, int(j)) for j in columns]
    assert Layout("(4,8):(1@0,1@1)")(-1, 2) == (-1, 2)
    assert Layout("((2,2),8):((1@0,2@0),1@1)")((3, 1), 2) == (5, 2)


@pytest.mark.parametrize("text", ["(4,8):(8,1)", "((2,2),8):((1,2),4)", "Sw<2,0,3> o 5 o (4,8):(8,1)", "(4,(2,4)):(0,(16,1))"])
def test_arrays_beyond_an_extent(text: str) -> None:
    """Are what their elements are, one by one."""
    layout = Layout(text)
    by_arrays = layout(np.arange(9)[:, None], np.arange(17))
    np.testing.assert_array_equal(by_arrays, [[layout(i, j) for j in range(17)] for i in range(9)])
    np.testing.assert_array_equal(layout(9, np.array([1, 2])), [layout(9, 1), layout(9, 2)])
    assert Layout("(4,8):(8,1)")(9, 2) == 74


def test_composition_is_one_after_the_other() -> None:
    composed = 0
    layouts = random_layouts(400, seed=3)
    for (a_shape, a_stride), (b_shape, b_stride) in zip(layouts, layouts[1:]):
        a, b = Layout(a_shape, a_stride), Layout(b_shape, b_stride)
        if b.cosize() > a.size():
            continue
        try:
            result = tegula.composition(a, b)
        except LayoutError:
            continue
        composed += 1
        np.testing.assert_array_equal(
            flat(result), oracle.values(a_shape, a_stride)[oracle.values(b_shape, b_stride)]
        )
    assert composed > 50


def test_coalesce_and_flatten_keep_the_values() -> None:
    for shape, stride in random_layouts(200, seed=5):
        layout = Layout(shape, stride)
        expected = oracle.values(shape, stride)
        for same in (layout.coalesce(), layout.flatten(), tegula.group(layout, 0, layout.rank())):
            np.testing.assert_array_equal(flat(same), expected)
        assert layout.flatten().depth() <= 1


def test_right_inverse() -> None:
    for shape, stride in random_layouts(200, seed=6):
        layout = Layout(shape, stride)
        inverse = layout.right_inverse()
        expected = oracle.values(shape, stride)
        np.testing.assert_array_equal(expected[flat(inverse)], np.arange(inverse.size()))


def test_complement_reaches_what_is_left_out() -> None:
    for text, size in (("4:2", 24), ("(2,4):(1,6)", 48), ("(2,2):(1,6)", 12)):
        layout, rest = Layout(text), tegula.complement(text, size)
        sums = flat(layout)[:, None] + flat(rest)[None, :]
        assert np.unique(sums).size == sums.size
        assert sums.max() + 1 >= size


def test_divides_and_products_rearrange() -> None:
    layout = Layout((12, 8), (8, 1))
    expected = layout.table()
    zipped = tegula.zipped_divide(layout, Tiler("3:1", 4))
    tiles = zipped.table().reshape(3, 4, 4, 2, order="F")
    np.testing.assert_array_equal(tiles[:, :, 2, 1], expected[6:9, 4:8])
    for divided in (
        layout.logical_divide([3, 4]),
        layout.tiled_divide([3, 4]),
        layout.flat_divide("<3:1,4:1>"),
    ):
        np.testing.assert_array_equal(np.sort(flat(divided)), np.arange(96))
    assert tegula.blocked_product("(2,2):(1,2)", "(3,4):(1,3)").size() == 48
    assert Layout("(2,2)").raked_product("(3,4)").shape == ((3, 2), (4, 2))


def test_other_operations_take_python_values() -> None:
    assert Layout((4, 8), (8, 1)).slice((None, 3)) == Layout("(4):(8)")
    assert tegula.slice("(4,8):(8,1)", (None, 3)).size() == 4
    assert tegula.select("(2,3,4):(1,2,6)", 2, 0) == Layout((4, 2), (6, 1))
    assert tegula.with_shape("8:1", (2, 4)) == Layout((2, 4), (1, 2))
    assert tegula.idx2crd(5, (2, 3)) == (1, 2)
    assert tegula.crd2idx((1, 2), (2, 3)) == 5
    assert tegula.crd2idx((1, 2), "(2,3):(3,1)") == 5
    assert tegula.size((4, 8)) == 32
    assert tegula.rank("(4,8)") == 2
    assert tegula.append("2:1", "3:4") == Layout((2, 3), (1, 4))
    assert tegula.evaluate("size((4,8))") == 32
    assert tegula.evaluate("<4,_>") == Tiler(4, None)
    assert tegula.upcast("(4,8):(8,1)", 2) == tegula.recast("(4,8):(8,1)", 8, 16)


def test_every_operation_of_the_library_is_offered() -> None:
    names = set(re.findall(r"(?:^  | or )(\w+)\(", tegula.operations(), re.MULTILINE))
    assert len(names) > 35
    for name in names:
        assert callable(getattr(tegula, name)), name
        assert getattr(tegula, name).__doc__, name


def test_no_indices_at_all() -> None:
    layout = Layout("(4,8)")
    nothing: list[Any] = [[], np.array([], int), np.zeros((0,), np.uint8)]
    for none in nothing:
        assert layout(none).shape == (0,) and layout(none).dtype == np.int64
    assert layout([[], []]).shape == (2, 0) and layout([], [1]).shape == (0,)
    assert Layout("(4,8):(1@0,1@1)")([]).shape == (0, 2)
    with pytest.raises(LayoutError, match="indices are of type float64; integers are needed"):
        layout(np.array([]))


def test_numpy_arrays_as_layouts() -> None:
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    layout = Layout.of(array)
    assert layout == Layout((2, 3, 4), (12, 4, 1))
    np.testing.assert_array_equal(layout.gather(array.ravel()), array)
    assert Layout.of(array.T) == Layout((4, 3, 2), (1, 4, 12))
    with pytest.raises(LayoutError, match="reaches beyond"):
        layout.gather(np.zeros(3))


def test_drawings() -> None:
    layout = Layout("(4,8):(8,1)")
    svg = layout._repr_svg_()
    assert svg is not None
    assert xml.etree.ElementTree.fromstring(svg).tag.endswith("svg")
    for bits in (1, 2, 4, 8, 16, 32, 64, 128):
        assert layout.draw("svg", banks=bits) != svg
    for bits in (-1, 3, 48, 256):
        with pytest.raises(tegula.ArgumentError, match=f"^draw: banks is {bits}; it must be 0, for none, or the width of an element in bits: 1, 2"):
            layout.draw("svg", banks=bits)
    assert "31" in layout.draw("text")
    assert "tikz" in layout.draw("latex")
    threads = Layout("((4,8),(2,2)):((32,1),(16,8))")
    assert "svg" in threads.draw_threads((16, 8))


def test_values_as_python_objects() -> None:
    layout = Layout("(4,8):(8,1)")
    assert hash(layout) == hash(Layout((4, 8), (8, 1)))
    assert len({layout, Layout((4, 8), (8, 1)), Layout((4, 8))}) == 2
    assert pickle.loads(pickle.dumps(layout)) == layout
    assert copy.deepcopy(layout) == layout
    assert layout != "(4,8):(8,1)"
    assert len(layout) == 2
    assert Layout(8) == Layout("8") == Layout("8:1")


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: Layout("(4,8"), "parse(\"(4,8\", column 5): a comma or ) was expected"),
        (lambda: Layout("composition((3,4):(4,1), 4:2)"), "no layout is A(B(i))"),
        (lambda: tegula.composition("(3,4):(4,1)", "4:2"), "composition((3,4):(4,1), 4:2): B's leaves carry"),
        (lambda: Layout("<4,_>"), "<4:1,_> is a tiler, and a layout is needed"),
        (lambda: Layout((4, 8.5)), "8.5 is float; a layout, text, an integer"),
        (lambda: Layout((0, 4)), "0"),
        (lambda: Layout("4:1\0"), "character 0"),
        (lambda: Layout(cast(Any, None)), "None is NoneType"),
        (lambda: Layout(cast(Any, b"4:1")), "b'4:1' is bytes"),
        (lambda: Layout("\udcff"), "not text that UTF-8 can hold"),
        (lambda: Layout(nested(100_000)), "nest more than 64 deep"),
        (lambda: Layout((2,) * 1000), "more than 32 integers"),
        (lambda: tegula.evaluate(cast(Any, 5)), "5 is int; an expression is text"),
        (lambda: Layout.of(cast(Any, [1, 2])), "[1, 2] is list; a NumPy array is needed"),
        (lambda: Layout("Sw<2,0,3> o (8,8)")[0], "take those of .unswizzled"),
        (lambda: Layout("4:1")(2**63), "an integer exceeds 2^62"),
        (lambda: Layout("4:1")(np.array([2**63], dtype=np.uint64)), "an integer exceeds 2^62"),
        (lambda: Layout("(256,257)").draw(), "more than 65536 cells"),
        (lambda: Layout("nothing(4)"), "a call of"),
        (lambda: Layout("(4,8)")(), "without a coordinate"),
        (lambda: Layout("(4,8)")(1.5), "1.5 is float"),
        (lambda: Layout("(4,8)")(np.array([0.5])), "float64; integers are needed"),
        (lambda: Layout("(4,8)")(np.arange(2), np.arange(3)), "arrays of the shapes (2,) and (3,), which do not broadcast"),
        (lambda: Layout(f"(4,4):({2**60},{2**58})")(np.array([4]), np.array([3])), "whose values exceed 2^62"),
        (lambda: Layout("(2,8):(5,1@1)")(0, 3), "an integer stride among coordinate strides"),
        (lambda: Layout("(4,8):(1@0,1@1)").gather(np.arange(99)), "are coordinates, and elements are gathered at offsets"),
        (lambda: Layout("(4,8)")(np.arange(4), np.arange(3), np.arange(2)), "2 modes, and is called with 3"),
        (lambda: Layout("(4,8)").draw("png"), "'svg', 'text' or 'latex'"),
        (lambda: tegula.size("(4,8)", 5), "5"),
        (lambda: Layout(2**70), "1180591620717411303424"),
        (lambda: tegula.select("(4,8)"), "its form is select"),
    ],
)
def test_refusals_are_sentences(call: object, sentence: str) -> None:
    with pytest.raises(LayoutError) as refused:
        call()  # type: ignore[operator]
    assert sentence in str(refused.value)


def test_modes_beyond_the_last() -> None:
    with pytest.raises(IndexError, match="2 modes, and no mode 2"):
        Layout("(4,8)")[2]
