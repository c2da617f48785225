// Rows of a matrix by TMA: .tile::gather4 and .tile::scatter4.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "run_schedules.hpp"
#include "tegula/arch/barrier.hpp"
#include "tegula/arch/cluster.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/tma.hpp"
#include "tegula/sim/launch.hpp"
#include "tegula/sim/tensor_map.hpp"

namespace tegula {
namespace {

constexpr int kRows = 12, kColumns = 64;
/// A gathered row's elements: with the swizzle of 128 bytes, its whole span.
constexpr int kWidth = 32;

struct RowsParams {
  TensorMap from, to;
  TmaRows gathered, scattered;
};

/// Gathers four rows of a matrix of 32-bit words and scatters them to another. With two CTAs the
/// first one gathers for both, and the second scatters.
template <int Ctas> struct MovesRows {
  using Params = RowsParams;
  static constexpr int threads = 32;
  static constexpr Dim3 cluster = {Ctas, 1, 1};
  struct SharedStorage {
    alignas(1024) std::uint32_t rows[4 * kWidth];
    Mbarrier full;
    template <class F> void name_buffers(F&& name) {
      name("rows", rows);
      name("full", full);
    }
  };

  TEGULA_DEVICE void operator()(RowsParams const& p, SharedStorage& smem) const {
    SharedAddr const full = shared_address(&smem.full), rows = shared_address(smem.rows);
    if (thread_idx() == 0) {
      mbarrier_init(full, 1);
      fence_mbarrier_init();
      mbarrier_arrive_expect_tx(full, sizeof smem.rows);
    }
    cta::sync();
    if constexpr (Ctas == 2) cluster::sync();
    if (thread_idx() == 0 && cluster_cta_rank() == 0) {
      if constexpr (Ctas == 2) {
        tma_gather4_multicast(rows, p.from, p.gathered, full, 0b11);
      } else {
        tma_gather4(rows, p.from, p.gathered, full);
      }
    }
    mbarrier_wait_parity(full, 0);
    if (thread_idx() == 0 && cluster_cta_rank() == Ctas - 1) {
      tma_scatter4(p.to, p.scattered, rows);
      bulk_commit_group();
      bulk_wait_group<0>();
    }
  }
};

TensorMapDescription matrix(void* address, TmaSwizzle swizzle) {
  TensorMapDescription d;
  d.dtype = DType::u32;
  d.rank = 2;
  d.address = address;
  d.extents = {kColumns, kRows};
  d.strides = {4 * kColumns};
  d.box = {kWidth, 1};
  d.swizzle = swizzle;
  return d;
}

struct Matrices {
  explicit Matrices(sim::Options const& options) : machine(options) {
    std::vector<std::uint32_t> values(kRows * kColumns);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint32_t>(i + 1);
    for (void** const one : {&from, &to}) {
      *one = machine.allocate(4 * values.size(), one == &from ? "from" : "to");
      if (one == &to) std::fill(values.begin(), values.end(), 0u);
      machine.upload(*one, values.data(), 4 * values.size());
    }
  }
  std::vector<std::uint32_t> result() {
    std::vector<std::uint32_t> values(kRows * kColumns);
    machine.download(values.data(), to, 4 * values.size());
    return values;
  }

  sim::Machine machine;
  void *from, *to;
};

sim::Options blackwell_options(sim::Options options = {}) {
  options.generation = sim::Generation::sm100;
  return options;
}

template <int Ctas> void expect_rows_moved(TmaSwizzle swizzle) {
  // Rows before and behind the matrix come as zeros, and go nowhere.
  RowsParams p{.gathered = {16, {7, -1, 3, 7}}, .scattered = {kWidth, {2, 0, kRows, 11}}};
  std::vector<std::uint32_t> expected(kRows * kColumns);
  for (std::size_t i = 0; i < 4; ++i) {
    int const from = p.gathered.row[i], to = p.scattered.row[i];
    for (int column = 0; to < kRows && column < kWidth; ++column)
      expected[static_cast<std::size_t>(to * kColumns + kWidth + column)] =
          from < 0 ? 0 : static_cast<std::uint32_t>(from * kColumns + 16 + column + 1);
  }
  for_each_schedule(
      [&](sim::Options const& options) {
        Matrices own(options);
        p.from = sim::encode(matrix(own.from, swizzle));
        p.to = sim::encode(matrix(own.to, swizzle));
        sim::Report const report = sim::launch<MovesRows<Ctas>>(own.machine, Dim3{Ctas, 1, 1}, p);
        EXPECT_TRUE(report.ok()) << report.text();
        EXPECT_EQ(own.result(), expected);
      },
      blackwell_options());
}

TEST(TmaRows, AreGatheredAndScattered) {
  expect_rows_moved<1>(TmaSwizzle::none);
  expect_rows_moved<1>(TmaSwizzle::b128);
}

TEST(TmaRows, AreGatheredForACluster) { expect_rows_moved<2>(TmaSwizzle::b128); }

/// The sentence that refuses a launch.
std::string refused(RowsParams p, sim::Options const& options,
                    void (*change)(TensorMapDescription&)) {
  Matrices own(options);
  TensorMapDescription from = matrix(own.from, TmaSwizzle::none);
  if (change != nullptr) change(from);
  p.from = sim::encode(from);
  p.to = sim::encode(matrix(own.to, TmaSwizzle::none));
  try {
    return sim::launch<MovesRows<1>>(own.machine, Dim3{1, 1, 1}, p).text();
  } catch (std::exception const& error) {
    return error.what();
  }
}

TEST(TmaRows, AreOfAMatrixAndABoxOfOneRow) {
  RowsParams const p{.gathered = {0, {0, 1, 2, 3}}, .scattered = {0, {0, 1, 2, 3}}};
  EXPECT_NE(refused(p, {}, nullptr).find("it is for sm_100a"), std::string::npos);
  sim::Options const options = blackwell_options();
  EXPECT_NE(refused(p, options, [](auto& d) { d.box[1] = 4; }).find("a box must have one"),
            std::string::npos);
  EXPECT_NE(refused(p, options,
                    [](auto& d) {
                      d.rank = 3;
                      d.extents[2] = 1, d.strides[1] = d.strides[0] * kRows, d.box[2] = 1;
                    })
                .find("it is for tensors of two axes"),
            std::string::npos);
  RowsParams before = p;
  before.scattered.row[2] = -1;
  EXPECT_NE(refused(before, options, nullptr).find("coordinate -1 of axis 1"), std::string::npos);
  before = p, before.gathered.column = 3;
  EXPECT_NE(refused(before, options, nullptr).find("byte 12 of its row"), std::string::npos);
}

}  // namespace
}  // namespace tegula
