#pragma once

#include "tegula/layout/coalesce.hpp"

namespace tegula {

/// What a layout is divided, composed or multiplied by: one layout, applied to all of it,
/// or a tree of them applied by mode, each of which may be `_`, "leave this mode". Text
/// form `<4:1,_,<2:1,8:2>>`; an integer n means n:1. A structural literal type. (CuTe:
/// Tiler, make_tile.)
struct Tiler {
  std::int64_t count = 0;  // entries
  Layout layouts;          // entry i is mode i; 1:0 for `_`
  LeafCounts open;         // angle brackets around the entries
  LeafCounts close;
  LeafCounts leaves_mode;  // 1: the entry is `_`

  constexpr Tiler() = default;
  /// All members: how nvcc writes a tiler that is a template argument into the host code.
  constexpr Tiler(std::int64_t count, Layout const& layouts, LeafCounts const& open,
                  LeafCounts const& close, LeafCounts const& leaves_mode)
      : count(count), layouts(layouts), open(open), close(close), leaves_mode(leaves_mode) {}
  constexpr Tiler(Layout const& layout) : count(1) {
    detail::append_mode(layouts, layout);
    detail::wrap(layouts);
  }
  constexpr Tiler(std::int64_t extent) : Tiler(unit(extent)) {}
  constexpr Tiler(Underscore) : Tiler(unit(1)) {
    layouts.strides[0] = 0;
    leaves_mode[0] = 1;
  }
  /// By mode: the tree of extents, each n meaning n:1 and each `_` itself.
  constexpr Tiler(Tuple const& shape) {
    for (int i = 0; i < shape.count; ++i) {
      bool const keep = shape.values[i] == Tuple::kUnderscore;
      append_leaf(keep ? Layout() : unit(shape.values[i]), keep, shape.open[i], shape.close[i]);
    }
    detail::wrap(layouts);
  }

  constexpr bool by_mode() const { return !detail::is_leaf(*this); }
  constexpr bool is_underscore() const { return !by_mode() && leaves_mode[0] != 0; }
  /// How many modes of a layout this is for; 1 if it is not by mode.
  constexpr int rank() const { return detail::rank_of(*this); }
  /// The layout that this is.
  constexpr Layout layout() const {
    if (by_mode() || is_underscore())
      refuse("Tiler::layout", "the tiler is by mode, or _, not one layout", *this);
    return layouts[0];
  }
  constexpr Tiler operator[](int mode) const {
    detail::LeafRange const range = detail::mode_of(*this, mode);
    Tiler result;
    for (int i = range.first; i < range.last; ++i)
      result.append_leaf(layouts[i], leaves_mode[i] != 0, open[i], close[i]);
    detail::wrap(result.layouts);
    if (!by_mode()) return result;
    if (range.first == 0) --result.open[0];
    if (range.last == count) --result.close[result.count - 1];
    return result;
  }

  friend constexpr bool operator==(Tiler const&, Tiler const&) = default;

  /// Appends an entry; `layouts` is to be wrapped after the last one.
  constexpr void append_leaf(Layout const& layout, bool keep, int opening, int closing) {
    detail::append_mode(layouts, keep ? unit(1, 0) : layout);
    leaves_mode.put(count, keep ? 1 : 0);
    open.put(count, opening);
    close.put(count, closing);
    ++count;
  }
  constexpr void append_tiler(Tiler const& part) {
    for (int i = 0; i < part.count; ++i)
      append_leaf(part.layouts[i], part.leaves_mode[i] != 0, part.open[i], part.close[i]);
  }

 private:
  static constexpr Layout unit(std::int64_t extent, std::int64_t stride = 1) {
    Layout result;
    result.append_leaf(extent, {stride});
    return result;
  }
};

/// A tiler by mode: make_tile(4, _, "8:2"_layout) is <4:1,_,8:2>.
template <class... Parts> constexpr Tiler make_tile(Parts const&... parts) {
  Tiler result;
  (result.append_tiler(Tiler(parts)), ...);
  detail::wrap(result.layouts);
  ++result.open[0];
  ++result.close[result.count - 1];
  return result;
}

/// A tiler's text form: <4:1,_,<2:1,8:2>>.
template <class Sink> constexpr void write_form(Sink& sink, Tiler const& tiler) {
  detail::write_tree(sink, tiler, '<', '>', [&](int i) {
    if (tiler.leaves_mode[i] != 0) {
      sink.write('_');
    } else {
      write_form(sink, tiler.layouts[i]);
    }
  });
}

}  // namespace tegula
