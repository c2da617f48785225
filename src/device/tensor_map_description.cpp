#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>

#include "tegula/device/error.hpp"
#include "tegula/device/tensor_map.hpp"
#include "tegula/sim/tensor_map.hpp"

namespace tegula {

namespace {

template <class T, std::size_t N>
std::span<T const> first(std::array<T, N> const& values, int count) {
  return std::span(values).first(std::min(N, static_cast<std::size_t>(std::max(count, 0))));
}

}  // namespace

std::string to_string(TensorMapDescription const& d) {
  std::string const corners = d.mode == TmaMode::tiled
                                  ? ""
                                  : fmt::format(" im2col corners ({}) ({})",
                                                fmt::join(first(d.lower_corner, d.rank - 2), ", "),
                                                fmt::join(first(d.upper_corner, d.rank - 2), ", "));
  return fmt::format(
      "{} rank {} at {} extents ({}) strides ({}) bytes box ({}) element strides ({}) swizzle {} L2 promotion {} "
      "fill {}{}",
      to_string(d.dtype), d.rank, d.address, fmt::join(first(d.extents, d.rank), ", "),
      fmt::join(first(d.strides, d.rank - 1), ", "), fmt::join(first(d.box, d.rank), ", "),
      fmt::join(first(d.element_strides, d.rank), ", "), to_string(d.swizzle),
      to_string(d.l2_promotion), to_string(d.fill), corners);
}

void check(TensorMapDescription const& d) {
  if (std::optional<std::string> const wrong = sim::refusal(d)) throw argument_error(*wrong);
}

}  // namespace tegula
