#include "calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "tegula/io/text.hpp"
#include "tegula/layout/swizzled_layout.hpp"
#include "tegula/layout/text.hpp"

namespace tegula::tool {
namespace {

char const* kind(Value const& value) {
  constexpr char const* kKinds[] = {"a layout", "a swizzled layout", "a tuple", "a tiler"};
  Tuple const* const tuple = std::get_if<Tuple>(&value.what);
  return tuple != nullptr && tuple->is_integer() ? "an integer" : kKinds[value.what.index()];
}

/// The arguments of one call, read as what the call wants of each.
class Arguments {
 public:
  Arguments(std::string_view name, std::vector<Value> const& values)
      : name_(name), values_(values) {}

  int count() const { return static_cast<int>(values_.size()); }
  Value const& operator[](int i) const { return values_[static_cast<std::size_t>(i)]; }

  template <class T> T const* get(int i) const { return std::get_if<T>(&(*this)[i].what); }

  /// A plain layout; a tuple is the compact layout of that shape.
  Layout layout(int i) const {
    if (Layout const* const plain = get<Layout>(i)) {
      return *plain;
    }
    if (Tuple const* const shape = get<Tuple>(i)) {
      return tegula::layout(*shape);
    }
    refuse(i, get<SwizzledLayout>(i) ? "a plain layout is needed" : "a layout is needed");
  }

  /// A tuple or an integer; a layout stands for its shape.
  Tuple tuple(int i) const {
    if (Tuple const* const tuple = get<Tuple>(i)) {
      return *tuple;
    }
    if (Layout const* const plain = get<Layout>(i)) {
      return plain->shape();
    }
    refuse(i, "a tuple or an integer is needed");
  }

  std::int64_t integer(int i) const {
    Tuple const* const tuple = get<Tuple>(i);
    if (tuple == nullptr || !tuple->is_integer() || tuple->is_underscore()) {
      refuse(i, "an integer is needed");
    }
    return tuple->value();
  }

  /// The number of a mode, or of modes.
  int mode(int i) const {
    std::int64_t const value = integer(i);
    if (value < 0 || value > kMaxLeaves) {
      refuse(i, fmt::format("the number of a mode is needed, from 0 to {}", kMaxLeaves));
    }
    return static_cast<int>(value);
  }

  /// How many modes a layout is to have.
  int rank(int i) const {
    std::int64_t const value = integer(i);
    if (value < 1 || value > kMaxLeaves) {
      refuse(i, fmt::format("a rank is needed, from 1 to {}", kMaxLeaves));
    }
    return static_cast<int>(value);
  }

  /// A plain layout that has indices for values.
  Layout indices(int i) const {
    Layout const result = layout(i);
    if (result.has_axes()) {
      refuse(i, "a layout of integer strides is needed: the values of this one are coordinates");
    }
    return result;
  }

  /// The width of an element in bits.
  int width(int i) const {
    constexpr std::int64_t kWidest = 1 << 16;
    std::int64_t const value = integer(i);
    if (value < 1 || value > kWidest) {
      refuse(i, "a width from 1 to 65536 bits is needed");
    }
    return static_cast<int>(value);
  }

  /// A tiler, or a layout as a tiler.
  Tiler tiler(int i) const { return get<Tiler>(i) ? *get<Tiler>(i) : Tiler(layout(i)); }

  /// f(argument i), where f is about the coordinates of a layout only: of a swizzled layout the
  /// swizzle and the offset stay.
  template <class F> Value on_layout(int i, F const& f) const {
    if (SwizzledLayout const* const swizzled = get<SwizzledLayout>(i)) {
      return {SwizzledLayout(swizzled->swizzle, swizzled->offset, f(swizzled->layout)), false};
    }
    return {f(layout(i)), false};
  }

  [[noreturn]] void refuse(int i, std::string const& needed) const {
    throw ExpressionError(fmt::format("argument {} of {} is {} {}, but {}", i + 1, name_,
                                      kind((*this)[i]), io::printable(to_text((*this)[i])),
                                      needed));
  }

 private:
  std::string_view name_;
  std::vector<Value> const& values_;
};

Value integer_value(std::int64_t value) { return {Tuple(value), false}; }

/// A tuple that was computed, as opposed to the shape of a compact layout: the few calls that are
/// about either leave it one.
bool is_computed_tuple(Arguments const& a) { return a.get<Tuple>(0) != nullptr && !a[0].bare; }

/// A layout, or mode `mode` of one (nested, where more follow): size(L, 1) is size<1>(L).
Layout mode_of(Arguments const& a) {
  Layout layout = a.get<SwizzledLayout>(0) ? a.get<SwizzledLayout>(0)->layout : a.layout(0);
  for (int i = 1; i < a.count(); ++i) {
    layout = layout[a.mode(i)];
  }
  return layout;
}

/// The same of a tuple that was computed.
Tuple tuple_mode_of(Arguments const& a) {
  Tuple tuple = a.tuple(0);
  for (int i = 1; i < a.count(); ++i) {
    tuple = tuple[a.mode(i)];
  }
  return tuple;
}

template <class Operation>
Value divide_or_multiply(Arguments const& a, Operation const& operation) {
  Tiler const tiler = a.tiler(1);
  return a.on_layout(0, [&](Layout const& layout) { return operation(layout, tiler); });
}

Value pad_or_extend(Arguments const& a, bool at_end) {
  if (a.count() == 2) {
    Layout const mode = a.layout(1);
    return a.on_layout(0, [&](Layout const& layout) {
      return at_end ? append(layout, mode) : prepend(layout, mode);
    });
  }
  int const rank = a.rank(1);
  Layout const filler = a.layout(2);
  return a.on_layout(0, [&](Layout const& layout) {
    return at_end ? append(layout, rank, filler) : prepend(layout, rank, filler);
  });
}

Value complement_call(Arguments const& a) {
  Layout const layout = a.layout(0);
  if (a.count() == 1) {
    return {complement(layout), false};
  }
  Tuple const target = a.tuple(1);
  if (target.is_integer()) {
    if (target.value() < 1) {
      a.refuse(1, "a size of at least 1 is needed");
    }
    return {complement(layout, target.value()), false};
  }
  // Up to a shape: one repetition of L may take in the first modes whole and part of the next, so
  // the count of repetitions is rounded up mode by mode, as in CuTe.
  std::int64_t repetition = 1;
  for (int i = 0; i < layout.leaves(); ++i) {
    if (layout.extents[i] > 1) {
      repetition = std::max(repetition, detail::multiply(layout.extents[i], layout.strides[i]));
    }
  }
  std::int64_t rest = repetition;
  std::int64_t count = 1;
  for (int i = 0; i < target.leaves(); ++i) {
    if (target.values[i] < 1) {
      a.refuse(1, "a shape of extents of at least 1 is needed");
    }
    count = detail::multiply(count, (target.values[i] + rest - 1) / rest);
    rest = (rest + target.values[i] - 1) / target.values[i];
  }
  return {complement(layout, detail::multiply(repetition, count)), false};
}

Value slice_call(Arguments const& a) {
  // slice(L, coordinate) as in the rest of the language, or slice(coordinate, L) as in CuTe: the
  // coordinate is the one written as a tuple with `_` in it.
  auto const has_underscore = [&](int i) {
    Tuple const* const tuple = a.get<Tuple>(i);
    bool found = false;
    for (int k = 0; tuple != nullptr && k < tuple->leaves(); ++k) {
      found = found || tuple->values[k] == Tuple::kUnderscore;
    }
    return found;
  };
  int const layout = has_underscore(0) ? 1 : 0;
  Tuple const coordinate = a.tuple(1 - layout);
  if (SwizzledLayout const* const swizzled = a.get<SwizzledLayout>(layout)) {
    return {slice(coordinate, *swizzled), false};
  }
  return {slice(coordinate, a.layout(layout)), false};
}

struct Call {
  std::string_view name;
  int least, most;  // arguments
  char const* form;
  char const* gives;
  Value (*evaluate)(Arguments const&);
};

constexpr int kAny = std::numeric_limits<int>::max();

constexpr Call kCalls[] = {
    {"coalesce", 1, 2, "coalesce(L [, PROFILE])",
     "L with as few modes as possible, or so by the modes of a tuple",
     [](Arguments const& a) -> Value {
       return a.on_layout(0, [&](Layout const& l) {
         return a.count() == 1 ? coalesce(l) : coalesce(l, a.tuple(1));
       });
     }},
    {"complement", 1, 2, "complement(L [, SIZE])",
     "the layout that reaches what L leaves out, up to SIZE (an integer or a shape)",
     complement_call},
    {"composition", 2, 2, "composition(A, B)",
     "A after B; B may be a tiler, which then works by mode",
     [](Arguments const& a) -> Value {
       return divide_or_multiply(a,
                                 [](Layout const& l, Tiler const& t) { return composition(l, t); });
     }},
    {"right_inverse", 1, 1, "right_inverse(L)", "R with L(R(i)) = i",
     [](Arguments const& a) -> Value {
       return {right_inverse(a.layout(0)), false};
     }},
    {"left_inverse", 1, 1, "left_inverse(L)", "R with R(L(i)) = i",
     [](Arguments const& a) -> Value {
       return {left_inverse(a.layout(0)), false};
     }},
    {"logical_divide", 2, 2, "logical_divide(L, T)", "(tile, rest), by mode where T is a tiler",
     [](Arguments const& a) -> Value {
       return divide_or_multiply(
           a, [](Layout const& l, Tiler const& t) { return logical_divide(l, t); });
     }},
    {"zipped_divide", 2, 2, "zipped_divide(L, T)", "((tiles), (rests))",
     [](Arguments const& a) -> Value {
       return divide_or_multiply(
           a, [](Layout const& l, Tiler const& t) { return zipped_divide(l, t); });
     }},
    {"tiled_divide", 2, 2, "tiled_divide(L, T)", "((tiles), rest, rest, ...)",
     [](Arguments const& a) -> Value {
       return divide_or_multiply(
           a, [](Layout const& l, Tiler const& t) { return tiled_divide(l, t); });
     }},
    {"flat_divide", 2, 2, "flat_divide(L, T)", "(tile, tile, ..., rest, rest, ...)",
     [](Arguments const& a) -> Value {
       return divide_or_multiply(a,
                                 [](Layout const& l, Tiler const& t) { return flat_divide(l, t); });
     }},
    {"logical_product", 2, 2, "logical_product(L, T)",
     "(L, copies of L in the order of T), by mode where T is a tiler",
     [](Arguments const& a) -> Value {
       return divide_or_multiply(
           a, [](Layout const& l, Tiler const& t) { return logical_product(l, t); });
     }},
    {"zipped_product", 2, 2, "zipped_product(L, T)", "((blocks), (copies))",
     [](Arguments const& a) -> Value {
       return divide_or_multiply(
           a, [](Layout const& l, Tiler const& t) { return zipped_product(l, t); });
     }},
    {"tiled_product", 2, 2, "tiled_product(L, T)", "((blocks), copies, copies, ...)",
     [](Arguments const& a) -> Value {
       return divide_or_multiply(
           a, [](Layout const& l, Tiler const& t) { return tiled_product(l, t); });
     }},
    {"flat_product", 2, 2, "flat_product(L, T)", "(block, block, ..., copies, copies, ...)",
     [](Arguments const& a) -> Value {
       return divide_or_multiply(
           a, [](Layout const& l, Tiler const& t) { return flat_product(l, t); });
     }},
    {"blocked_product", 2, 2, "blocked_product(L, T)",
     "blocks L arranged as T is: mode i is (L's, T's)",
     [](Arguments const& a) -> Value {
       Layout const tiler = a.layout(1);
       return a.on_layout(0, [&](Layout const& l) { return blocked_product(l, tiler); });
     }},
    {"raked_product", 2, 2, "raked_product(L, T)",
     "blocks L interleaved as T is: mode i is (T's, L's)",
     [](Arguments const& a) -> Value {
       Layout const tiler = a.layout(1);
       return a.on_layout(0, [&](Layout const& l) { return raked_product(l, tiler); });
     }},
    {"tile_to_shape", 2, 3, "tile_to_shape(L, SHAPE [, ORDER])",
     "L repeated up to SHAPE, over the modes in the given order",
     [](Arguments const& a) -> Value {
       Tuple const shape = a.tuple(1);
       return a.on_layout(0, [&](Layout const& l) {
         return a.count() == 2 ? tile_to_shape(l, shape) : tile_to_shape(l, shape, a.tuple(2));
       });
     }},
    {"flatten", 1, 1, "flatten(L)", "L without nesting",
     [](Arguments const& a) -> Value {
       if (is_computed_tuple(a)) {
         return {flatten(a.tuple(0)), false};
       }
       return a.on_layout(0, [](Layout const& l) { return flatten(l); });
     }},
    {"group", 3, 3, "group(L, BEGIN, END)", "modes BEGIN to END-1 made one mode",
     [](Arguments const& a) -> Value {
       return a.on_layout(0, [&](Layout const& l) { return group(l, a.mode(1), a.mode(2)); });
     }},
    {"select", 2, kAny, "select(L, MODE, ...)", "these modes, in this order",
     [](Arguments const& a) -> Value {
       return a.on_layout(0, [&](Layout const& l) {
         Layout result;
         for (int i = 1; i < a.count(); ++i) {
           detail::append_mode(result, l[a.mode(i)]);
         }
         detail::wrap(result);
         return detail::bounded(result);
       });
     }},
    {"take", 3, 3, "take(L, BEGIN, END)", "modes BEGIN to END-1",
     [](Arguments const& a) -> Value {
       return a.on_layout(0, [&](Layout const& l) { return take(l, a.mode(1), a.mode(2)); });
     }},
    {"append", 2, 3, "append(L, M) or append(L, RANK, M)",
     "L with M as its last mode, or padded with M to RANK modes",
     [](Arguments const& a) -> Value { return pad_or_extend(a, true); }},
    {"prepend", 2, 3, "prepend(L, M) or prepend(L, RANK, M)",
     "L with M as its first mode, or padded with M to RANK modes",
     [](Arguments const& a) -> Value { return pad_or_extend(a, false); }},
    {"replace", 3, 3, "replace(L, MODE, M)", "L with M in the place of that mode",
     [](Arguments const& a) -> Value {
       return a.on_layout(0, [&](Layout const& l) { return replace(l, a.mode(1), a.layout(2)); });
     }},
    {"slice", 2, 2, "slice(L, COORDINATE)", "the modes at which the coordinate has '_'",
     slice_call},
    {"with_shape", 2, kAny, "with_shape(L, SHAPE)", "L's elements in the shape SHAPE",
     [](Arguments const& a) -> Value {
       Tuple shape = a.tuple(1);
       if (a.count() > 2) {
         shape = Tuple();
         for (int i = 1; i < a.count(); ++i) {
           detail::append_mode(shape, a.tuple(i));
         }
         detail::wrap(shape);
       }
       return a.on_layout(0, [&](Layout const& l) { return with_shape(l, shape); });
     }},
    {"upcast", 2, 2, "upcast(L, N)", "L in elements N times as wide",
     [](Arguments const& a) -> Value {
       if (SwizzledLayout const* const swizzled = a.get<SwizzledLayout>(0)) {
         return {upcast(*swizzled, a.integer(1)), false};
       }
       return {upcast(a.layout(0), a.integer(1)), false};
     }},
    {"downcast", 2, 2, "downcast(L, N)", "L in elements of which N make one",
     [](Arguments const& a) -> Value {
       if (SwizzledLayout const* const swizzled = a.get<SwizzledLayout>(0)) {
         return {downcast(*swizzled, a.integer(1)), false};
       }
       return {downcast(a.layout(0), a.integer(1)), false};
     }},
    {"recast", 3, 3, "recast(L, OLD_BITS, NEW_BITS)", "L in elements of another width",
     [](Arguments const& a) -> Value {
       if (SwizzledLayout const* const swizzled = a.get<SwizzledLayout>(0)) {
         return {recast(*swizzled, a.width(1), a.width(2)), false};
       }
       return {recast(a.layout(0), a.integer(1), a.integer(2)), false};
     }},
    {"max_common_vector", 2, 2, "max_common_vector(A, B)",
     "how many elements lie side by side in both",
     [](Arguments const& a) -> Value {
       return integer_value(max_common_vector(a.layout(0), a.layout(1)));
     }},
    {"max_common_layout", 2, 2, "max_common_layout(A, B)", "the layout of those elements",
     [](Arguments const& a) -> Value {
       return {max_common_layout(a.layout(0), a.layout(1)), false};
     }},
    {"nullspace", 1, 1, "nullspace(L)", "the indices that L maps to 0",
     [](Arguments const& a) -> Value {
       return {nullspace(a.layout(0)), false};
     }},
    {"size", 1, kAny, "size(L [, MODE ...])", "the number of elements, of the layout or of a mode",
     [](Arguments const& a) -> Value {
       return integer_value(is_computed_tuple(a) ? size(tuple_mode_of(a)) : size(mode_of(a)));
     }},
    {"cosize", 1, kAny, "cosize(L [, MODE ...])",
     "1 + the sum of (extent - 1) |stride|, with a swizzle 1 + the greatest offset",
     [](Arguments const& a) -> Value {
       if (SwizzledLayout const* const swizzled = a.get<SwizzledLayout>(0);
           swizzled != nullptr && a.count() == 1) {
         return integer_value(cosize(*swizzled));
       }
       return integer_value(cosize(mode_of(a)));
     }},
    {"rank", 1, kAny, "rank(L [, MODE ...])", "the number of modes",
     [](Arguments const& a) -> Value {
       return integer_value(is_computed_tuple(a) ? rank(tuple_mode_of(a)) : rank(mode_of(a)));
     }},
    {"depth", 1, kAny, "depth(L [, MODE ...])", "how deep the modes are nested",
     [](Arguments const& a) -> Value {
       return integer_value(is_computed_tuple(a) ? depth(tuple_mode_of(a)) : depth(mode_of(a)));
     }},
    {"idx2crd", 2, 3, "idx2crd(INDEX, SHAPE [, STRIDE])",
     "the coordinate of an index; SHAPE may be a layout",
     [](Arguments const& a) -> Value {
       if (a.get<Layout>(1) != nullptr && a.count() == 2) {
         Layout const layout = a.indices(1);
         return {idx2crd(a.integer(0), layout.shape(), layout.stride()), false};
       }
       return {a.count() == 2 ? idx2crd(a.tuple(0), a.tuple(1))
                              : idx2crd(a.integer(0), a.tuple(1), a.tuple(2)),
               false};
     }},
    {"crd2idx", 2, 3, "crd2idx(COORDINATE, SHAPE [, STRIDE])",
     "the index or offset of a coordinate; SHAPE may be a layout",
     [](Arguments const& a) -> Value {
       if (a.count() == 3) {
         return integer_value(crd2idx(a.tuple(0), a.tuple(1), a.tuple(2)));
       }
       if (SwizzledLayout const* const swizzled = a.get<SwizzledLayout>(1)) {
         return integer_value((*swizzled)(a.tuple(0)));
       }
       return integer_value(crd2idx(a.tuple(0), a.indices(1)));
     }},
};

Call const* find_call(std::string_view name) {
  for (Call const& call : kCalls) {
    if (call.name == name) {
      return &call;
    }
  }
  return nullptr;
}

/// The call as it was made.
std::string form_of(std::string_view name, std::vector<Value> const& arguments) {
  std::string text;
  for (Value const& argument : arguments) {
    text.append(text.empty() ? "" : ", ").append(io::printable(to_text(argument)));
  }
  return fmt::format("{}({})", name, text);
}

layout_error refused(std::string const& sentence) {
  layout_error error;
  write_form(error, sentence.c_str());
  return error;
}

}  // namespace

bool is_call(std::string_view name) { return find_call(name) != nullptr; }

Value evaluate_call(std::string_view name, std::vector<Value> const& arguments) {
  Call const& call = *find_call(name);
  int const count = static_cast<int>(arguments.size());
  if (count < call.least || count > call.most) {
    throw ExpressionError(fmt::format("{} has {}, but its form is {}", name,
                                      io::counted(count, "argument"), call.form));
  }
  try {
    return call.evaluate(Arguments(name, arguments));
  } catch (layout_error const& error) {
    std::string_view const sentence = error.what();
    if (sentence.starts_with(fmt::format("{}(", name))) {
      throw;
    }
    // What the call is made of refuses operands that nobody wrote: the call comes first.
    throw refused(fmt::format("{}: {}", form_of(name, arguments), sentence));
  }
}

std::string call_names() {
  std::string names;
  for (Call const& call : kCalls) {
    names.append(names.empty() ? "" : " ").append(call.name);
  }
  return names;
}

std::string describe_calls() {
  std::string lines;
  for (Call const& call : kCalls) {
    lines += fmt::format("  {:<38} {}\n", call.form, call.gives);
  }
  return lines;
}

}  // namespace tegula::tool
