#pragma once

/// What the files of the device layer say alike of a problem.

#include <cstdint>

#include "tegula/atom/mma_spec.hpp"
#include "tegula/kernel/attention_config.hpp"
#include "tegula/kernel/gemm_sm90_config.hpp"
#include "tegula/kernel/grouped_gemm_sm90_config.hpp"
#include "tegula/numeric/dtype.hpp"

namespace tegula::device {

/// Where a launch's counters of arrivals begin in what Backend::stream_workspace gives, behind the
/// line of its counter of tiles; and how many there are.
inline constexpr int kArrivalsOffset = 128, kMostArrivals = 8192;

/// How many tiles of `tile` cover `extent`; both positive.
constexpr std::int64_t ceil_div(std::int64_t extent, std::int64_t tile) {
  return (extent + tile - 1) / tile;
}

constexpr int bytes_of(DType type) { return bits(type) / 8; }

constexpr char const* text(Major major) { return major == Major::k ? "k" : "mn"; }
constexpr char const* text(Exponential exponential) {
  return exponential == Exponential::polynomial ? "polynomial" : "ex2_approx";
}
constexpr char const* text(Schedule schedule) {
  constexpr char const* names[] = {"basic", "cooperative", "pingpong"};
  return names[static_cast<int>(schedule)];
}

constexpr char const* text(Scales scales) {
  constexpr char const* names[] = {"none", "1x128,128x128", "1x128,1x128"};
  return names[static_cast<int>(scales)];
}
constexpr char const* text(Grouping grouping) {
  constexpr char const* names[] = {"none", "contiguous", "masked", "k"};
  return names[static_cast<int>(grouping)];
}

}  // namespace tegula::device
