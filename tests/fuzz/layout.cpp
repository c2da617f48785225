// Expressions of the tool's language: whatever the text, a value that keeps its invariant and reads
// back, or a refusal.

#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <variant>

#include "expression.hpp"
#include "tegula/layout/complement.hpp"

namespace {

__extension__ typedef __int128 Wide;

void require(bool condition) {
  if (!condition) std::abort();
}

void holds_invariant(tegula::Layout const& layout) {
  constexpr Wide limit = Wide{1} << 62;
  Wide size = 1;
  Wide reach = 0;
  for (int i = 0; i < layout.leaves(); ++i) {
    Wide const stride = layout.strides[i];
    require(layout.extents[i] >= 1);
    size *= layout.extents[i];
    reach += (layout.extents[i] - Wide{1}) * (stride < 0 ? -stride : stride);
    require(size <= limit && reach <= limit);
  }
  require(size == layout.size());
}

void holds_laws(tegula::Layout const& layout) {
  holds_invariant(layout);
  if (layout.has_axes() || layout.leaves() == 0) return;
  tegula::Layout const simple = tegula::coalesce(layout);
  holds_invariant(simple);
  for (std::int64_t const index : {std::int64_t{0}, layout.size() / 3, layout.size() - 1})
    require(simple(index) == layout(index));
  tegula::Layout const right = tegula::right_inverse(layout);
  for (std::int64_t const index : {std::int64_t{0}, right.size() / 2, right.size() - 1})
    require(layout(right(index)) == index);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  try {
    tegula::tool::Value const value =
        tegula::tool::evaluate({reinterpret_cast<char const*>(data), size});
    std::string const text = tegula::tool::to_text(value);
    require(tegula::tool::to_text(tegula::tool::evaluate(text)) == text);
    if (auto const* const layout = std::get_if<tegula::Layout>(&value.what)) holds_laws(*layout);
    if (auto const* const swizzled = std::get_if<tegula::SwizzledLayout>(&value.what))
      holds_invariant(swizzled->layout);
  } catch (tegula::layout_error const&) {
  } catch (tegula::tool::ExpressionError const&) {
  }
  return 0;
}
