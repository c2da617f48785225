// The laws of the algebra on random nested layouts, held against the oracle.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <optional>

#include "generators.hpp"
#include "oracle.hpp"
#include "tegula/layout/parse.hpp"

namespace tegula {
namespace {

using oracle::Integer;
using oracle::Leaves;
using oracle::leaves_of;
using oracle::Table;

template <class Operation> std::optional<Layout> attempt(Operation const& operation) {
  try {
    return operation();
  } catch (layout_error const& error) {
    RC_ASSERT(std::string(error.what()).find("): ") != std::string::npos);
    return std::nullopt;
  }
}

/// The coordinate of `index` in the shape of `layout`.
Tuple coordinate_of(Layout const& layout, Integer index) { return idx2crd(index, layout.shape()); }

RC_GTEST_PROP(Layouts, TextReadsBack, ()) {
  Layout const a = random::any_layout();
  RC_ASSERT(parse_layout(to_string(a)) == a);
  RC_ASSERT(parse_tuple(to_string(a.shape())) == a.shape());
  Layout const b = random::any_layout();
  Tiler const tiler = make_tile(a, _, make_tile(b, 3));
  RC_ASSERT(parse_tiler(to_string(tiler)) == tiler);
  RC_ASSERT(tiler[0].layout() == a);
  RC_ASSERT(tiler[2][0].layout() == b);
}

RC_GTEST_PROP(Layouts, AnIndexIsTheCoordinateItStandsFor, ()) {
  Layout const a = random::any_layout();
  Leaves const leaves = leaves_of(a);
  for (Integer i = 0; i < a.size(); ++i) {
    Integer const offset = oracle::at(leaves, i);
    RC_ASSERT(a(i) == offset);
    RC_ASSERT(a(coordinate_of(a, i)) == offset);
    RC_ASSERT(crd2idx(coordinate_of(a, i), a.shape()) == i);
    Tuple by_mode;
    Integer rest = i;
    for (int mode = 0; mode < a.rank(); ++mode) {
      by_mode.append_leaf(rest % a[mode].size());
      rest /= a[mode].size();
    }
    if (a.depth() > 0) {
      detail::wrap(by_mode);
      RC_ASSERT(a(by_mode) == offset);
    }
  }
}

RC_GTEST_PROP(Layouts, CoalesceIsCanonical, ()) {
  Layout const a = random::any_layout();
  Layout const simple = coalesce(a);
  RC_ASSERT(simple.size() == a.size());
  RC_ASSERT(simple.depth() <= 1);
  RC_ASSERT(oracle::table(leaves_of(simple)) == oracle::table(leaves_of(a)));
  // Any other layout of the same function has the same coalesced form.
  std::optional<Leaves> const found = oracle::as_layout(oracle::table(leaves_of(a)));
  RC_ASSERT(found.has_value());
  Layout other;
  for (oracle::Leaf const& leaf : *found) other.append_leaf(leaf.extent, {leaf.stride});
  if (other.count == 0) other.append_leaf(1, {0});
  if (other.count > 1) detail::wrap(other);
  RC_ASSERT(coalesce(other) == simple);
}

RC_GTEST_PROP(Layouts, CoalesceByModeKeepsModes, ()) {
  Layout const a = random::any_layout();
  RC_PRE(a.depth() > 0);
  Tuple profile;
  for (int mode = 0; mode < a.rank(); ++mode) profile.append_leaf(1);
  detail::wrap(profile);
  Layout const result = coalesce(a, profile);
  RC_ASSERT(result.rank() == a.rank());
  for (int mode = 0; mode < a.rank(); ++mode) RC_ASSERT(result[mode] == coalesce(a[mode]));
}

RC_GTEST_PROP(Layouts, Composition, ()) {
  Layout const a = random::any_layout();
  Layout const b = random::any_layout(64);
  std::optional<Layout> const result = attempt([&] { return composition(a, b); });
  Table const reach = oracle::table(leaves_of(a), b.cosize());
  if (!result) {
    RC_ASSERT(!oracle::composable(reach, leaves_of(b)));
    return;
  }
  for (Integer i = 0; i < b.size(); ++i) {
    Tuple const coord = coordinate_of(b, i);
    RC_ASSERT((*result)(coord) == reach[static_cast<std::size_t>(b(i))]);
  }
  // Associativity, wherever everything exists: A o (B o C) is (A o B) o C as a function.
  Layout const c = random::any_layout(16);
  std::optional<Layout> const inner = attempt([&] { return composition(b, c); });
  std::optional<Layout> const outer = attempt([&] { return composition(*result, c); });
  if (!inner || !outer || c.cosize() > b.size()) return;
  std::optional<Layout> const whole = attempt([&] { return composition(a, *inner); });
  RC_ASSERT(whole.has_value());
  RC_ASSERT(coalesce(*whole) == coalesce(*outer));
}

RC_GTEST_PROP(Layouts, CompositionWithCoordinates, ()) {
  Layout const a = random::injective_layout();
  RC_PRE(a.depth() > 0 && a.rank() <= kMaxAxes);
  // The coordinates of a's own shape lead to a itself.
  RC_ASSERT(coalesce(composition(a, identity_layout(a.shape()))) == coalesce(a));
  Layout const identity = identity_layout(a.shape());
  for (Integer i = 0; i < a.size(); ++i) RC_ASSERT(a(identity.coordinate(i)) == a(i));
}

RC_GTEST_PROP(Layouts, Complement, ()) {
  Layout const a = random::any_layout(64);
  Integer const cotarget = random::number(1, 300);
  std::optional<Layout> const result = attempt([&] { return complement(a, cotarget); });
  std::optional<oracle::Complement> const wanted = oracle::complement(leaves_of(a), cotarget);
  RC_ASSERT(result.has_value() == wanted.has_value());
  if (result) RC_ASSERT(oracle::table(leaves_of(*result)) == oracle::table(wanted->leaves));
}

RC_GTEST_PROP(Layouts, InversesOfCompactLayouts, ()) {
  Layout const a = random::layout_of(random::Style::permuted);
  Layout const right = right_inverse(a);
  Layout const left = left_inverse(a);
  RC_ASSERT(right.size() == a.size());
  for (Integer i = 0; i < a.size(); ++i) {
    RC_ASSERT(a(right(i)) == i);
    RC_ASSERT(left(a(i)) == i);
  }
  RC_ASSERT(coalesce(right_inverse(right)) == coalesce(a));
}

RC_GTEST_PROP(Layouts, LeftInverseOfPaddedLayouts, ()) {
  Layout const a = random::injective_layout();
  Layout const left = left_inverse(a);
  for (Integer i = 0; i < a.size(); ++i) RC_ASSERT(left(a(i)) == i);
  Layout const wide = random::layout_of(random::Style::broadcast);
  Layout const back = left_inverse(wide);
  for (Integer i = 0; i < wide.size(); ++i) RC_ASSERT(wide(back(wide(i))) == wide(i));
  RC_ASSERT(nullspace(wide).size() * filter(wide).size() == wide.size());
  for (Integer i = 0; i < nullspace(wide).size(); ++i) RC_ASSERT(wide(nullspace(wide)(i)) == 0);
}

RC_GTEST_PROP(Layouts, LogicalDivideCoversEveryElementOnce, ()) {
  Layout const a = random::injective_layout();
  Layout const tiler = random::injective_layout(16);
  std::optional<Layout> const rest = attempt([&] { return complement(tiler, a.size()); });
  std::optional<Layout> const result = attempt([&] { return logical_divide(a, tiler); });
  if (!result) return;
  RC_ASSERT(rest.has_value());
  std::multiset<Integer> offsets;
  for (Integer r = 0; r < rest->size(); ++r) {
    for (Integer t = 0; t < tiler.size(); ++t) {
      Integer const index = tiler(t) + (*rest)(r);
      RC_ASSERT((*result)(coord(t, r)) == a(index));
      if (index < a.size()) offsets.insert(a(index));
    }
  }
  RC_ASSERT(static_cast<Integer>(offsets.size()) == a.size());
  for (Integer i = 0; i < a.size(); ++i) RC_ASSERT(offsets.count(a(i)) == 1u);
}

RC_GTEST_PROP(Layouts, DividesByModeRegroupTheSameOffsets, ()) {
  random::Numbers const outer = random::extents(3, 64);
  Integer const t0 = *rc::gen::element<Integer>(1, 2, 3);
  Integer const t1 = *rc::gen::element<Integer>(1, 2, 4);
  random::Numbers const e = {outer[0] * t0, outer[1] * t1, outer[2]};
  random::Numbers const d = random::strides(
      e, *rc::gen::element(random::Style::compact, random::Style::permuted, random::Style::padded));
  Layout const a = layout(tuple(e[0], e[1], e[2]), tuple(d[0], d[1], d[2]));
  Tiler const tiler = make_tile(t0, t1);
  Layout const logical = logical_divide(a, tiler);  // ((t0,r0),(t1,r1),e2)
  Layout const zipped = zipped_divide(a, tiler);    // ((t0,t1),(r0,r1,e2))
  Layout const tiled = tiled_divide(a, tiler);      // ((t0,t1),r0,r1,e2)
  Layout const flat = flat_divide(a, tiler);        // (t0,t1,r0,r1,e2)
  for (Integer i = 0; i < a.size(); ++i) {
    Integer const x = i % e[0];
    Integer const y = i / e[0] % e[1];
    Integer const z = i / e[0] / e[1];
    RC_ASSERT(logical(coord(coord(x % t0, x / t0), coord(y % t1, y / t1), z)) == a(i));
    RC_ASSERT(zipped(coord(coord(x % t0, y % t1), coord(x / t0, y / t1, z))) == a(i));
    RC_ASSERT(tiled(coord(coord(x % t0, y % t1), x / t0, y / t1, z)) == a(i));
    RC_ASSERT(flat(x % t0, y % t1, x / t0, y / t1, z) == a(i));
  }
  // A mode left alone: its tile is 1:0 and it is its own rest.
  Layout const one = zipped_divide(a, make_tile(_, t1));
  for (Integer i = 0; i < a.size(); ++i) {
    Integer const y = i / e[0] % e[1];
    RC_ASSERT(one(coord(coord(0, y % t1), coord(i % e[0], y / t1, i / e[0] / e[1]))) == a(i));
  }
}

RC_GTEST_PROP(Layouts, Products, ()) {
  Layout const block =
      random::layout_of(*rc::gen::element(random::Style::compact, random::Style::permuted), 32);
  Layout const tiler =
      random::layout_of(*rc::gen::element(random::Style::compact, random::Style::permuted), 16);
  Layout const product = logical_product(block, tiler);
  RC_ASSERT(product[0] == block);
  std::set<Integer> offsets;
  for (Integer j = 0; j < tiler.size(); ++j) {
    for (Integer i = 0; i < block.size(); ++i) {
      Integer const offset =
          block(i) + block.size() * tiler(j);  // the block is compact, so copies follow each other
      RC_ASSERT(product(coord(i, j)) == offset);
      offsets.insert(offset);
    }
  }
  RC_ASSERT(static_cast<Integer>(offsets.size()) == block.size() * tiler.size());
  RC_PRE(block.depth() > 0 && tiler.depth() > 0);
  Layout const blocked = blocked_product(block, tiler);
  Layout const raked = raked_product(block, tiler);
  int const rank = std::max(block.rank(), tiler.rank());
  RC_ASSERT(blocked.rank() == rank);
  RC_ASSERT(raked.rank() == rank);
  for (Integer j = 0; j < tiler.size(); ++j) {
    for (Integer i = 0; i < block.size(); ++i) {
      Tuple in_blocked;
      Tuple in_raked;
      Integer rest_i = i;
      Integer rest_j = j;
      for (int mode = 0; mode < rank; ++mode) {
        Integer const size_i = mode < block.rank() ? block[mode].size() : 1;
        Integer const size_j = mode < tiler.rank() ? tiler[mode].size() : 1;
        detail::append_mode(in_blocked, coord(rest_i % size_i, rest_j % size_j));
        detail::append_mode(in_raked, coord(rest_j % size_j, rest_i % size_i));
        rest_i /= size_i;
        rest_j /= size_j;
      }
      detail::wrap(in_blocked);
      detail::wrap(in_raked);
      RC_ASSERT(blocked(in_blocked) == product(coord(i, j)));
      RC_ASSERT(raked(in_raked) == product(coord(i, j)));
    }
  }
}

RC_GTEST_PROP(Layouts, TileToShape, ()) {
  Integer const m = *rc::gen::element<Integer>(1, 2, 4);
  Integer const n = *rc::gen::element<Integer>(1, 2, 3, 8);
  Layout const block = random::number(0, 1) == 0 ? row_major(m, n) : col_major(m, n);
  Integer const rows = m * random::number(1, 4);
  Integer const columns = n * random::number(1, 4);
  bool const rows_first = random::number(0, 1) == 0;
  Layout const result =
      tile_to_shape(block, shape(rows, columns), rows_first ? tuple(0, 1) : tuple(1, 0));
  RC_ASSERT(result[0].size() == rows);
  RC_ASSERT(result[1].size() == columns);
  for (Integer i = 0; i < rows; ++i) {
    for (Integer j = 0; j < columns; ++j) {
      Integer const copy = rows_first ? i / m + j / n * (rows / m) : j / n + i / m * (columns / n);
      RC_ASSERT(result(i, j) == block(i % m, j % n) + m * n * copy);
    }
  }
}

RC_GTEST_PROP(Layouts, WithShapeIsTheSameFunction, ()) {
  Layout const a = random::layout_of(
      *rc::gen::element(random::Style::compact, random::Style::permuted, random::Style::padded));
  Tuple const simple = coalesce(a).shape();
  RC_ASSERT(oracle::table(leaves_of(with_shape(a, simple))) == oracle::table(leaves_of(a)));
  RC_ASSERT(oracle::table(leaves_of(with_shape(a, a.shape()))) == oracle::table(leaves_of(a)));
}

RC_GTEST_PROP(Layouts, SlicesAndModes, ()) {
  random::Numbers const e = random::extents(4, 128);
  random::Numbers const d = random::strides(e, random::Style::arbitrary);
  Layout const a =
      layout(tuple(e[0], tuple(e[1], e[2]), e[3]), tuple(d[0], tuple(d[1], d[2]), d[3]));
  Integer const x = random::number(0, e[0] - 1);
  Integer const y = random::number(0, e[1] - 1);
  Slice const rest = slice_and_offset(coord(x, coord(y, _), _), a);
  RC_ASSERT(rest.layout == layout(tuple(e[2], e[3]), tuple(d[2], d[3])));
  for (Integer i = 0; i < e[2]; ++i) {
    for (Integer j = 0; j < e[3]; ++j)
      RC_ASSERT(rest.offset + rest.layout(i, j) == a(coord(x, coord(y, i), j)));
  }
  RC_ASSERT(dice(coord(x, coord(y, _), _), a) == layout(tuple(e[0], e[1]), tuple(d[0], d[1])));
  RC_ASSERT(slice(coord(x, _, 0), a) == make_layout(a[1]));
  RC_ASSERT(select(a, 2, 0) == make_layout(a[2], a[0]));
  RC_ASSERT(take(a, 1, 3) == make_layout(a[1], a[2]));
  RC_ASSERT(group(a, 0, 2) == make_layout(make_layout(a[0], a[1]), a[2]));
  RC_ASSERT(replace(a, 1, a[0]) == make_layout(a[0], a[0], a[2]));
  RC_ASSERT(prepend(a, a[2]) == make_layout(a[2], a[0], a[1], a[2]));
  RC_ASSERT(append(a, 5).rank() == 5);
  RC_ASSERT(flatten(a) == layout(tuple(e[0], e[1], e[2], e[3]), tuple(d[0], d[1], d[2], d[3])));
}

RC_GTEST_PROP(Layouts, RecastRoundTrip, ()) {
  Layout const a = random::layout_of(random::Style::permuted);
  Integer const n = *rc::gen::element<Integer>(1, 2, 4);
  bool has_unit = false;
  for (int i = 0; i < a.leaves(); ++i) has_unit = has_unit || a.stride(i).value == 1;
  RC_PRE(has_unit);
  Layout const fine = downcast(a, n);
  RC_ASSERT(fine.size() == a.size() * n);
  RC_ASSERT(coalesce(upcast(fine, n)) == coalesce(a));
  RC_ASSERT(recast(a, 16 * n, 16) == fine);
  RC_ASSERT(coalesce(recast(fine, 16, 16 * n)) == coalesce(a));
}

}  // namespace
}  // namespace tegula
