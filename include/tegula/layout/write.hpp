#pragma once

#include "tegula/layout/layout.hpp"

/// The text form of tuples and layouts: error sentences and to_string share it.
namespace tegula {

namespace detail {

/// Writes the tree, calling leaf(i) where leaf i stands.
template <class Sink, class Tree, class WriteLeaf>
constexpr void write_tree(Sink& sink, Tree const& tree, char opening, char closing, WriteLeaf const& leaf) {
  if (tree.count == 0) sink.write(opening);
  if (tree.count == 0) sink.write(closing);
  for (int i = 0; i < tree.count; ++i) {
    if (i > 0) sink.write(',');
    for (int k = 0; k < tree.open[i]; ++k) sink.write(opening);
    leaf(i);
    for (int k = 0; k < tree.close[i]; ++k) sink.write(closing);
  }
}

}  // namespace detail

/// A tuple as CuTe prints it: 8, (4,(3,6)), (_,2), ().
template <class Sink> constexpr void write_form(Sink& sink, Tuple const& tuple) {
  detail::write_tree(sink, tuple, '(', ')', [&](int i) {
    if (tuple.values[i] == Tuple::kUnderscore) {
      sink.write('_');
    } else {
      write_form(sink, tuple.values[i]);
    }
  });
}

/// A layout as CuTe prints it: 8:1, (4,(3,6)):(1,(4,12)), (16,8):(1@0,1@1).
template <class Sink> constexpr void write_form(Sink& sink, Layout const& layout) {
  detail::write_tree(sink, layout, '(', ')', [&](int i) { write_form(sink, layout.extents[i]); });
  sink.write(':');
  detail::write_tree(sink, layout, '(', ')', [&](int i) {
    write_form(sink, layout.strides[i]);
    if (layout.axes[i] == 0) return;
    sink.write('@');
    write_form(sink, layout.axes[i] - 1);
  });
}

}  // namespace tegula
