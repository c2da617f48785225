// The snippets of docs/porting_from_cute.md that are no lines of the example kernels: they compile,
// and say what the page says they do.

#include <gtest/gtest.h>

#include "tegula/arch/special_registers.hpp"
#include "tegula/layout/algebra.hpp"
#include "tegula/layout/literal.hpp"
#include "tegula/sim/launch.hpp"
#include "tegula/tensor/copy.hpp"
#include "tegula/tensor/tma.hpp"
#include "tegula/tensor/warpgroup_gemm.hpp"

namespace tegula {
namespace {

TEST(PortingFromCute, LayoutsAreValues) {
  constexpr Layout a = layout(shape(4, 8), stride(1, 4));
  constexpr Layout b = "(4,8):(1,4)"_layout;
  constexpr SwizzledLayout s = {Swizzle{3, 3, 3}, 0, row_major(8, 64)};
  static_assert(a == b && a.size() == 32 && a(3, 5) == 23);
  static_assert(composition(a, layout(4, 8))(1) == 8);
  static_assert(s(1, 0) == 72);
}

struct Snippets {
  struct Params {
    float const* p;
    float* out;
    int rows, columns;
    std::int64_t stride;
  };
  static constexpr int threads = 32;
  struct SharedStorage {};

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    int const thread = thread_idx();
    // (rows, columns), columns contiguous
    auto const m = matrix<1>(p.p, p.stride, p.rows, p.columns);
    auto const g = local_tile<8, 16>(m, 1, _);  // (8, 16, column tiles)
    auto const part = local_partition<"(8,4):(4,1)"_layout>(g(_, _, 2), thread);  // (1, 4)
    auto registers = make_fragment_like(part);                                    // (1, 4)
    clear(registers);
    copy(part, registers);  // zeros where the tile reaches beyond the matrix

    // (1, 4)
    auto const where = local_partition<"(8,4):(4,1)"_layout>(identity_tensor<8, 16>(), thread);
    Coordinate<2> const second = where(0, 1);  // of the thread's second element, in the tile

    auto const from_there = domain_offset(m, 8, 32);  // element (0, 0) is m(8, 32)
    float const same = from_there(second[0], second[1]);
    if (registers(0, 1) == same) st_global(p.out + thread, same);
  }
};

TEST(PortingFromCute, TensorsPartitionsAndCoordinatesAgree) {
  constexpr int rows = 16, columns = 64;
  sim::Machine machine;
  std::vector<float> in(rows * columns), out(32, -1.0f);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);
  auto* const device_in = static_cast<float*>(machine.allocate(in.size() * 4, "in"));
  auto* const device_out = static_cast<float*>(machine.allocate(out.size() * 4, "out"));
  machine.upload(device_in, in.data(), in.size() * 4);
  machine.upload(device_out, out.data(), out.size() * 4);
  sim::launch<Snippets>(machine, {1, 1, 1}, {device_in, device_out, rows, columns, columns});
  machine.download(out.data(), device_out, out.size() * 4);
  for (int thread = 0; thread < 32; ++thread)
    EXPECT_EQ(out[static_cast<std::size_t>(thread)],
              (8 + thread / 4) * columns + 32 + thread % 4 + 4);
}

}  // namespace
}  // namespace tegula
