#include "tegula/device/selection.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <optional>

#include "families.hpp"
#include "problem.hpp"

namespace tegula {

void check(DeviceProperties const& device) {
  if (device.multiprocessors < 1)
    throw argument_error(
        fmt::format("the device has {} multiprocessors; it must have at least 1.", device.multiprocessors));
}

int vector_bytes(GemmArguments const& arguments) {
  GemmArguments const g = with_defaults(arguments);
  int const element = bits(g.in) / 8;
  auto const aligned = [&](void const* pointer, std::int64_t ld, std::int64_t contiguous,
                           std::int64_t batch_stride) {
    return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0 && ld * element % 16 == 0 &&
           contiguous * element % 16 == 0 && (g.batch == 1 || batch_stride * element % 16 == 0);
  };
  return aligned(g.a, *g.lda, g.a_major == Major::k ? g.k : g.m, *g.a_batch_stride) &&
                 aligned(g.b, *g.ldb, g.b_major == Major::k ? g.k : g.n, *g.b_batch_stride)
             ? 16
             : element;
}

std::optional<int> select(AttentionArguments const& a, std::span<AttentionConfig const> table,
                          DeviceProperties const& device) {
  using Traits = device::FamilyTraits<AttentionSm80Family>;
  std::optional<int> best;
  double least = 0;
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (Traits::check(a, table[i], device) != nullptr) continue;
    double const cost = Traits::cost(a, table[i], device);
    if (!best || cost < least) best = static_cast<int>(i), least = cost;
  }
  return best;
}

}  // namespace tegula
