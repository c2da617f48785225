#include <gtest/gtest.h>

#include "broken_kernel.hpp"
#include "run_kernel.hpp"
#include "tegula/layout/bank_conflicts.hpp"

/// Wavefronts, conflicts, sectors and bytes of access patterns whose counts can be told by hand.
namespace tegula {
namespace {

using sim::LineCounters;

struct Storage : Broken {
  struct SharedStorage {
    alignas(1024) std::uint32_t words[4096];
  };
};

/// Each lane stores Bytes bytes at lane * Stride, or at the address of lane & Mask where a mask
/// is given.
template <class V, int Stride, int Mask = 31> struct StridedStores : Storage {
  void operator()(Params const&, SharedStorage& smem) const {
    st_shared(shared_address(smem.words) + static_cast<SharedAddr>(Stride * (lane_id() & Mask)),
              V{});
  }
};

struct Pair {
  std::uint32_t word[2];
};
struct Quad {
  std::uint32_t word[4];
};

template <class Kernel> LineCounters stores() {
  return report_of<Kernel>().instruction("st.shared");
}

TEST(BankConflicts, OfStridedAccesses) {
  auto const expect = [](LineCounters const& c, int wavefronts, int conflicts) {
    EXPECT_EQ(c.instructions, 1);
    EXPECT_EQ(c.shared_wavefronts, wavefronts);
    EXPECT_EQ(c.bank_conflicts, conflicts);
  };
  expect(stores<StridedStores<std::uint32_t, 4>>(), 1, 0);
  expect(stores<StridedStores<std::uint32_t, 8>>(), 2, 1);
  expect(stores<StridedStores<std::uint32_t, 128>>(), 32, 31);
  expect(stores<StridedStores<std::uint32_t, 132>>(), 1, 0);
  expect(stores<StridedStores<std::uint32_t, 128, 0>>(), 1, 0);  // one word for all
  expect(stores<StridedStores<std::uint16_t, 2>>(), 1, 0);       // two lanes a word
  expect(stores<StridedStores<std::uint8_t, 128, 3>>(), 4, 3);   // four words of one bank
  expect(stores<StridedStores<Pair, 8>>(), 2, 0);                // two passes of 16 lanes
  expect(stores<StridedStores<Pair, 16>>(), 4, 2);
  expect(stores<StridedStores<Quad, 16>>(), 4, 0);  // four passes of 8 lanes
  expect(stores<StridedStores<Quad, 32>>(), 8, 4);
  expect(stores<StridedStores<Quad, 128>>(), 32, 28);
  expect(stores<StridedStores<Quad, 144>>(), 4, 0);  // padded rows
}

/// ldmatrix of four matrices whose rows are Stride bytes apart.
template <int Stride> struct LdmatrixRows : Storage {
  void operator()(Params const&, SharedStorage& smem) const {
    SharedAddr const row = shared_address(smem.words) + static_cast<SharedAddr>(Stride * lane_id());
    st_shared(row, Quad{});
    warp::sync();
    std::uint32_t r[4];
    ldmatrix(r, row);
  }
};

TEST(BankConflicts, OfLdmatrixPerMatrix) {
  LineCounters const dense = report_of<LdmatrixRows<16>>().instruction("ldmatrix");
  EXPECT_EQ(dense.shared_wavefronts, 4);
  EXPECT_EQ(dense.bank_conflicts, 0);
  EXPECT_EQ(dense.shared_bytes, 512);
  LineCounters const rows_of_64 = report_of<LdmatrixRows<64>>().instruction("ldmatrix");
  EXPECT_EQ(rows_of_64.shared_wavefronts, 16);
  EXPECT_EQ(rows_of_64.bank_conflicts, 12);
  LineCounters const rows_of_128 = report_of<LdmatrixRows<128>>().instruction("ldmatrix");
  EXPECT_EQ(rows_of_128.shared_wavefronts, 32);
  EXPECT_EQ(rows_of_128.bank_conflicts, 28);
}

/// Stores of V at the offsets that the input gives.
template <class V> struct ScatteredStores : instruction_kernels::OneWarp {
  using SharedStorage = Storage::SharedStorage;
  static constexpr int in_words = 32;
  static constexpr int out_words = 1;
  void operator()(Params const& p, SharedStorage& smem) const {
    st_shared(shared_address(smem.words) + ld_global<std::uint32_t>(p.in + lane_id()), V{});
  }
};

template <class V> void compare_with_layouts_wavefronts() {
  sim::Machine machine({.races = false});  // lanes may store to the same place
  for (std::uint32_t seed = 1; seed <= 50; ++seed) {
    auto offsets = words(32, seed);
    std::uint32_t const range = seed % 2 == 0 ? 16384 : 512;
    std::int64_t addresses[32];
    for (std::size_t lane = 0; lane < 32; ++lane) {
      offsets[lane] = offsets[lane] % range / sizeof(V) * sizeof(V);
      addresses[lane] = offsets[lane];
    }
    sim::Report report;
    run_kernel<ScatteredStores<V>>(machine, offsets, &report);
    EXPECT_EQ(report.total.shared_wavefronts, wavefronts(addresses, 32, sizeof(V)))
        << sizeof(V) << " bytes, seed " << seed;
  }
}

TEST(BankConflicts, AreWhatTheLayoutsCountAtCompileTime) {
  compare_with_layouts_wavefronts<std::uint8_t>();
  compare_with_layouts_wavefronts<std::uint16_t>();
  compare_with_layouts_wavefronts<std::uint32_t>();
  compare_with_layouts_wavefronts<Pair>();
  compare_with_layouts_wavefronts<Quad>();
}

template <class V, int Stride> struct StridedLoads : Broken {
  void operator()(Params const& p, SharedStorage&) const {
    ld_global<V>(p.in + Stride * lane_id());
  }
};

TEST(Sectors, OfStridedLoads) {
  auto const expect = [](sim::Report const& report, int sectors, int bytes) {
    LineCounters const c = report.instruction("ld.global");
    EXPECT_EQ(c.global_sectors, sectors);
    EXPECT_EQ(c.global_bytes, bytes);
  };
  expect(report_of<StridedLoads<std::uint32_t, 4>>(), 4, 128);
  expect(report_of<StridedLoads<Quad, 16>>(), 16, 512);
  expect(report_of<StridedLoads<std::uint32_t, 32>>(), 32, 128);
  expect(report_of<StridedLoads<std::uint8_t, 1>>(), 1, 32);
  expect(report_of<StridedLoads<std::uint32_t, 0>>(), 1, 128);
}

/// Lanes run one after another, and some skip an access: still each round of the loop is one access
/// of the warp.
struct PredicatedLoop : Broken {
  static constexpr int threads = 64;
  static constexpr int line = __LINE__ + 4;
  void operator()(Params const& p, SharedStorage&) const {
    for (int i = 0; i < 4; ++i) {
      if (lane_id() >= 2 * i) {
        st_global(p.out + 128 * i + 4 * lane_id(), i);
      }
      st_global(p.out + 512 + 128 * i + 4 * lane_id(), i);
    }
  }
};

TEST(Counters, AccessesOfALoopArePutTogetherByRound) {
  sim::Report const report = report_of<PredicatedLoop>();
  ASSERT_EQ(report.lines.size(), 2u) << report.text();
  EXPECT_EQ(report.lines[0].where.line, PredicatedLoop::line);
  EXPECT_EQ(report.lines[0].instructions, 8) << "4 rounds of 2 warps";
  EXPECT_EQ(report.lines[0].global_bytes, 2 * 4 * (32 + 30 + 28 + 26));
  EXPECT_EQ(report.lines[0].global_sectors, 2 * (4 + 4 + 4 + 4));
  EXPECT_EQ(report.lines[1].instructions, 8);
  EXPECT_EQ(report.lines[1].global_sectors, 2 * 4 * 4);
  EXPECT_EQ(report.total.instructions, 16);
}

struct MmaTwice : Broken {
  static constexpr int threads = 96;
  void operator()(Params const&, SharedStorage&) const {
    std::uint32_t const a[4] = {}, b[2] = {};
    float c[4] = {};
    mma_sync<warp_mma(DType::f16, DType::f32, 16)>(c, a, b, c);
    mma_sync<warp_mma(DType::tf32, DType::f32, 8)>(c, a, b, c);
  }
};

TEST(Counters, MultiplyAddsOfMmaSync) {
  sim::Report const report = report_of<MmaTwice>({}, {2, 1, 1});
  EXPECT_EQ(report.total.fused_multiply_adds, 2 * 3 * (16 * 8 * 16 + 16 * 8 * 8));
  EXPECT_EQ(report.instruction("mma.sync").instructions, 12);
}

TEST(Counters, CanBeLeftOutOfAReport) {
  sim::Report const report = report_of<MmaTwice>();
  std::string const all = report.text(), findings = report.text(sim::Counters::left_out);
  EXPECT_NE(all.find("mma.sync"), std::string::npos);
  EXPECT_EQ(findings.find("mma.sync"), std::string::npos);
  EXPECT_EQ(all.substr(0, findings.size()), findings);
  EXPECT_NE(report.json().find("\"lines\""), std::string::npos);
  EXPECT_EQ(report.json(sim::Counters::left_out).find("\"lines\""), std::string::npos);
}

TEST(Counters, AreOffWhereNotAskedFor) {
  EXPECT_TRUE(report_of<MmaTwice>({.count = false}).lines.empty());
}

}  // namespace
}  // namespace tegula
