#include "values/global_tensor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "run_schedules.hpp"
#include "tegula/arch/atomic.hpp"
#include "tegula/arch/cluster.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/reduction.hpp"
#include "tegula/arch/tma.hpp"
#include "tegula/layout/layout.hpp"
#include "tegula/layout/literal.hpp"
#include "tegula/layout/text.hpp"
#include "tegula/sim/explore.hpp"
#include "tegula/sim/tensor_map.hpp"
#include "tegula/tensor/vector.hpp"

/// Tensors that a launch describes: what findings call their elements, and what the launch does
/// not cover.
namespace tegula {
namespace {

using sim::Coverage;
using sim::Finding;
using sim::FindingKind;
using sim::GlobalTensor;
using ::testing::HasSubstr;

GlobalTensor tensor_of(Layout const& layout, int element_bytes, void const* address) {
  GlobalTensor tensor{"x", address, layout, 8 * element_bytes, {}};
  for (int mode = 0; mode < layout.rank(); ++mode)
    tensor.modes.push_back("mode" + std::to_string(mode));
  return tensor;
}

TEST(ElementAt, InvertsTheLayoutWhereItCanBeInverted) {
  static char memory[4096];
  for (Layout const& layout :
       {"(5,7):(7,1)"_layout, "(5,7):(1,5)"_layout, "(5,7):(9,1)"_layout, "(3,4,2):(4,1,16)"_layout,
        "((2,3),4):((1,8),2)"_layout, "(4,(2,3)):(2,(1,8))"_layout, "(3,5):(5,3)"_layout,
        "(3,5):(2,3)"_layout, "(4,3):(0,2)"_layout, "(4,6):(1,2)"_layout, "6:3"_layout,
        "(1,1):(0,0)"_layout, "(1,4):(0,2)"_layout, "(2,3,2):(1,10,4)"_layout,
        layout(tuple(5, 4), tuple(-4, 1)), layout(tuple(3, 4), tuple(-1, -5))}) {
    for (int const bytes : {1, 2, 12}) {
      char* const address = memory + 2048;
      GlobalTensor const tensor = tensor_of(layout, bytes, address);
      std::map<std::int64_t, std::vector<std::int64_t>> indices;  // by offset
      for (std::int64_t i = 0; i < layout.size(); ++i) indices[layout(i)].push_back(i);
      std::int64_t const least = indices.begin()->first, greatest = indices.rbegin()->first;
      EXPECT_EQ(sim::offsets_of(layout).least, least);
      EXPECT_EQ(sim::offsets_of(layout).greatest, greatest);
      for (std::int64_t byte = (least - 2) * bytes; byte < (greatest + 3) * bytes; ++byte) {
        std::int64_t const offset = byte >= 0 ? byte / bytes : (byte - bytes + 1) / bytes;
        sim::ElementAt const at = sim::element_at(tensor, address + byte);
        auto const known = indices.find(offset);
        std::string const what = to_string(layout) + " at byte " + std::to_string(byte);
        EXPECT_EQ(at.between, known == indices.end() && least < offset && offset < greatest)
            << what;
        if (known == indices.end() || known->second.size() > 1) {
          EXPECT_TRUE(at.coordinate.empty()) << what;
        } else {
          EXPECT_EQ(at.coordinate, sim::coordinate_of(layout, known->second[0])) << what;
        }
      }
    }
  }
}

TEST(ElementAt, AModesCoordinateIsItsFlatIndex) {
  Layout const layout = "((2,3),4):((1,8),2)"_layout;
  EXPECT_EQ(sim::coordinate_of(layout, 5 + 6 * 2), (std::vector<std::int64_t>{5, 2}));
  GlobalTensor tensor = tensor_of(layout, 1, nullptr);
  tensor.modes = {"row", "column"};
  EXPECT_EQ(sim::coordinate_text(tensor, {5, 2}), "row 5, column 2");
}

/// Memory of 4096 bytes, `in` written and `out` not, which kernels are launched on
/// with descriptions.
struct Launcher {
  explicit Launcher(sim::Options options = {}) : machine(quiet(options)) {
    buffers = {static_cast<char*>(machine.allocate(4096, "in")),
               static_cast<char*>(machine.allocate(4096, "out"))};
    machine.fill(buffers.in, 0, 4096);
  }
  static sim::Options quiet(sim::Options options) {
    options.throw_on_finding = false;
    return options;
  }
  template <class Kernel> sim::Report run(std::vector<GlobalTensor> tensors, Dim3 grid = {}) {
    return sim::launch<Kernel>(machine, grid, buffers, std::move(tensors));
  }
  /// A matrix of words in `out`, or in `in`.
  GlobalTensor words(char* address, Layout const& layout, Coverage coverage = Coverage::any) const {
    return sim::global_tensor(address == buffers.in ? "in" : "out", reinterpret_cast<int*>(address),
                              layout, {"row", "column"}, coverage);
  }

  sim::Machine machine;
  Buffers buffers;
};

/// Lane 0 reads a word of `out`, which nobody has written.
template <int Byte> struct ReadsOut : Broken {
  void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() == 0) ld_global<int>(p.out + Byte);
  }
};

/// Where the launch says that it reads.
template <int Byte>
std::string place(std::vector<GlobalTensor> const& tensors, Launcher& launcher) {
  sim::Report const report = launcher.run<ReadsOut<Byte>>(tensors);
  EXPECT_EQ(report.findings.size(), 1u) << report.text();
  Finding const& f = report.findings.at(0);
  EXPECT_EQ(f.message, "ld.global reads " + f.coordinate + ", which nobody has written");
  EXPECT_EQ(f.buffer, "out") << "of the allocation";
  return f.coordinate;
}

TEST(Described, FindingsNameElements) {
  Launcher launcher;
  char* const out = launcher.buffers.out;
  EXPECT_EQ(place<40>({}, launcher), "byte 40 of out");
  auto const rows = launcher.words(out, "(10,20):(25,1)"_layout);
  EXPECT_EQ(place<4 * (3 * 25 + 7)>({rows}, launcher), "row 3, column 7 of out");
  EXPECT_EQ(place<4 * 22>({rows}, launcher), "byte 88 of out (between rows)");
  EXPECT_EQ(place<4 * 500>({rows}, launcher), "byte 2000 of out") << "behind it";
  EXPECT_EQ(place<40>({}, launcher), "byte 40 of out") << "a launch's descriptions end with it";

  auto const overlapping = launcher.words(out, "(10,20):(0,1)"_layout);
  EXPECT_EQ(place<40>({overlapping}, launcher), "byte 40 of out");
  auto const batches = sim::global_tensor("D", reinterpret_cast<int*>(out + 8),
                                          "(4,8,3):(8,1,64)"_layout, {"row", "column", "batch"});
  EXPECT_EQ(place<4 * (2 + 64 * 2 + 8 * 1 + 5)>({batches}, launcher),
            "row 1, column 5, batch 2 of D (byte 572 of out)");
  // Two that take turns, as Q and K of one projection do.
  auto const q = sim::global_tensor("Q", reinterpret_cast<int*>(out), "(16,8):(16,1)"_layout,
                                    {"row", "column"});
  auto const k = sim::global_tensor("K", reinterpret_cast<int*>(out + 32), "(16,8):(16,1)"_layout,
                                    {"row", "column"});
  EXPECT_EQ(place<4 * (16 + 3)>({q, k}, launcher), "row 1, column 3 of Q (byte 76 of out)");
  EXPECT_EQ(place<4 * (16 + 11)>({q, k}, launcher), "row 1, column 3 of K (byte 108 of out)");
}

std::string refusal(GlobalTensor const& tensor, Launcher& launcher) {
  try {
    launcher.run<ReadsOut<0>>({tensor});
  } catch (std::invalid_argument const& error) {
    return std::string(error.what()).substr(std::string(error.what()).find("> ") + 1);
  }
  return "";
}

TEST(Described, DescriptionsThatAreNoneAreRefused) {
  Launcher launcher;
  char* const out = launcher.buffers.out;
  GlobalTensor const good = launcher.words(out, "(32,32):(32,1)"_layout);
  EXPECT_EQ(refusal(good, launcher), "");
  EXPECT_TRUE(launcher.machine.holds(good));
  GlobalTensor bad = good;
  bad.name.clear();
  EXPECT_THAT(refusal(bad, launcher), HasSubstr("a tensor is described without a name"));
  bad = good;
  bad.element_bits = 4;
  EXPECT_THAT(refusal(bad, launcher),
              HasSubstr("out has elements of 4 bits; they must have a multiple of 8"));
  bad = good;
  bad.modes = {"row"};
  EXPECT_THAT(
      refusal(bad, launcher),
      HasSubstr(
          "out has the layout (32,32):(32,1), of 2 modes, and names for 1; it must have at least "
          "one mode, and a name for each"));
  bad.modes = {"row", ""};
  EXPECT_THAT(refusal(bad, launcher), HasSubstr("a mode of out has an empty name"));
  bad = good;
  bad.layout = Layout{};
  EXPECT_THAT(refusal(bad, launcher), HasSubstr("of 0 modes, and names for 2"));
  bad.layout = "(2,2):(1@0,1@1)"_layout;
  EXPECT_THAT(refusal(bad, launcher), HasSubstr("of coordinates; its strides must be integers"));
  bad = launcher.words(out + 4, "(32,32):(32,1)"_layout);
  EXPECT_FALSE(launcher.machine.holds(bad));
  EXPECT_THAT(refusal(bad, launcher),
              HasSubstr("out, of layout (32,32):(32,1) and elements of 4 bytes, at "
                        "byte 4 of out, does not lie in its 4096 bytes"));
  bad = launcher.words(out, layout(tuple(2, 32), tuple(-32, 1)));
  EXPECT_THAT(refusal(bad, launcher), HasSubstr("does not lie in its 4096 bytes")) << "before it";
  int host = 0;
  bad.address = &host;
  EXPECT_FALSE(launcher.machine.holds(bad));
  EXPECT_THAT(refusal(bad, launcher), HasSubstr("in no allocation of this machine"));
}

/// Each thread writes the word of its number, but for those from `Left` on.
template <int Left> struct WritesWords : Broken {
  static constexpr int line = __LINE__ + 3;
  void operator()(Params const& p, SharedStorage&) const {
    int const i = 32 * block_idx().x + lane_id();
    if (i < Left) st_global(p.out + 4 * i, i);
  }
};

Finding only_uncovered(sim::Report const& report, FindingKind kind, std::string const& message) {
  Finding const f = only_finding(report, kind, 0);
  EXPECT_THAT(f.message, HasSubstr(message));
  EXPECT_EQ(f.cta.x, -1);
  EXPECT_EQ(f.warp, -1);
  EXPECT_EQ(f.lane, -1);
  EXPECT_FALSE(f.ended_cluster);
  return f;
}

TEST(Coverage, AnElementThatIsNotWrittenIsFound) {
  Launcher launcher;
  auto const out = launcher.words(launcher.buffers.out, "(4,32):(32,1)"_layout, Coverage::written);
  EXPECT_TRUE(launcher.run<WritesWords<128>>({out}, {4, 1, 1}).ok());
  Finding const f = only_uncovered(
      launcher.run<WritesWords<127>>({out}, {4, 1, 1}), FindingKind::unwritten_output,
      "nobody writes row 3, column 31 of out, one of 128 elements: the launch is to write them all; row 3, "
      "column 30, beside it, st.global of CTA (3, 0, 0), warp 0 writes (checker/global_tensor_test.cpp:");
  EXPECT_EQ(f.buffer, "out");
  EXPECT_EQ(f.coordinate, "row 3, column 31 of out");
  EXPECT_EQ(f.other.line, WritesWords<127>::line);
  EXPECT_EQ(f.other_cta, (Dim3{3, 0, 0}));
  only_uncovered(launcher.run<WritesWords<126>>({out}, {4, 1, 1}), FindingKind::unwritten_output,
                 "nobody writes row 3, column 30 of out, nor 1 other of its 128 elements: ");
  only_uncovered(launcher.run<WritesWords<128>>({out}, {3, 1, 1}), FindingKind::unwritten_output,
                 "nobody writes row 3, column 0 of out, nor 31 others of its 128 elements: ");
  only_uncovered(
      launcher.run<WritesWords<0>>({out}), FindingKind::unwritten_output,
      "nobody writes row 0, column 0 of out, nor any other of its 128 elements: the launch is to "
      "write them all");
}

TEST(Coverage, WhatAnotherLaunchOrTheHostWroteIsNotWritten) {
  Launcher launcher;
  auto const out = launcher.words(launcher.buffers.out, "(1,32):(32,1)"_layout, Coverage::written);
  launcher.machine.fill(launcher.buffers.out, 0, 4096);
  EXPECT_TRUE(launcher.run<WritesWords<32>>({out}).ok());
  EXPECT_FALSE(launcher.run<WritesWords<31>>({out}).ok());
}

TEST(Coverage, GapsNeedNotBeCovered) {
  Launcher launcher;
  // Words 0 to 3 of each 8, and 4 to 7.
  auto const left = launcher.words(launcher.buffers.out, "(4,4):(8,1)"_layout, Coverage::written);
  EXPECT_TRUE(launcher.run<WritesWords<28>>({left}).ok());
  EXPECT_FALSE(launcher.run<WritesWords<27>>({left}).ok());
  auto const columns =
      launcher.words(launcher.buffers.out, "(4,4):(1,8)"_layout, Coverage::written);
  EXPECT_TRUE(launcher.run<WritesWords<28>>({columns}).ok());
  only_uncovered(launcher.run<WritesWords<27>>({columns}), FindingKind::unwritten_output,
                 "nobody writes row 3, column 3 of out, one of 16");
  auto const all_rows =
      launcher.words(launcher.buffers.out, "(4,4):(0,1)"_layout, Coverage::written);
  EXPECT_TRUE(launcher.run<WritesWords<4>>({all_rows}).ok());
  only_uncovered(launcher.run<WritesWords<3>>({all_rows}), FindingKind::unwritten_output,
                 "nobody writes byte 12 of out, nor 3 others of its 16 elements");
}

TEST(Coverage, APartOfAnElementIsNotEnough) {
  Launcher launcher;
  auto const wide = sim::global_tensor("out", reinterpret_cast<double*>(launcher.buffers.out),
                                       "16:1"_layout, {"element"}, Coverage::written);
  EXPECT_TRUE(launcher.run<WritesWords<32>>({wide}).ok());
  only_uncovered(launcher.run<WritesWords<31>>({wide}), FindingKind::unwritten_output,
                 "nobody writes element 15 of out, one of 16 elements");
}

TEST(Coverage, IsLookedForWithCheckingAlone) {
  Launcher launcher({.check = false});
  auto const out = launcher.words(launcher.buffers.out, "(4,32):(32,1)"_layout, Coverage::written);
  EXPECT_TRUE(launcher.run<WritesWords<0>>({out}).ok());
  Launcher without_races({.races = false});
  auto const f =
      only_uncovered(without_races.run<WritesWords<31>>({without_races.words(
                         without_races.buffers.out, "(1,32):(32,1)"_layout, Coverage::written)}),
                     FindingKind::unwritten_output, "row 0, column 31 of out");
  EXPECT_EQ(f.other.line, 0) << "who is beside it is what races are found by";
}

TEST(Coverage, DoesNotDependOnTheHostsThreads) {
  std::set<std::string> reports;
  for (int const workers : {1, 2, 7}) {
    Launcher launcher({.workers = workers});
    auto const out =
        launcher.words(launcher.buffers.out, "(32,32):(32,1)"_layout, Coverage::written);
    reports.insert(launcher.run<WritesWords<1000>>({out}, {32, 1, 1}).text());
  }
  EXPECT_EQ(reports.size(), 1u);
}

TEST(Coverage, IsFoundForTheWholeLaunch) {
  Launcher launcher;
  auto const out = launcher.words(launcher.buffers.out, "(1,32):(32,1)"_layout, Coverage::written);
  sim::Report const report = launcher.run<WritesWords<31>>({out});
  EXPECT_THAT(sim::to_string(report.findings.at(0), "K"),
              ::testing::StartsWith("kernel K: unwritten_output: "));
  EXPECT_THAT(report.json(), HasSubstr("\"cta\": null"));
  launcher.machine.options().allow = {
      {FindingKind::unwritten_output, "", 0, "out", "the last is spare"}};
  EXPECT_TRUE(launcher.run<WritesWords<31>>({out}).ok());
}

/// As in docs/machine.md.
struct LeavesOneOut : WritesWords<127> {};

TEST(Coverage, IsDocumented) {
  Launcher launcher;
  auto const out = launcher.words(launcher.buffers.out, "(4,32):(32,1)"_layout, Coverage::written);
  only_finding(launcher.run<LeavesOneOut>({out}, {4, 1, 1}), FindingKind::unwritten_output, 0);
  EXPECT_NE(documented("LeavesOneOut"), "");
}

struct WritesAndTraps : Broken {
  void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() == 0) st_global(p.out, 1);
    warp::sync();
    trap();
  }
};

TEST(Coverage, IsNotAskedForWhereAClusterWasEnded) {
  Launcher launcher;
  auto const out = launcher.words(launcher.buffers.out, "(1,32):(32,1)"_layout, Coverage::written);
  sim::Report const report = launcher.run<WritesAndTraps>({out});
  ASSERT_EQ(report.findings.size(), 1u) << report.text();
  EXPECT_EQ(report.findings[0].kind, FindingKind::trap);
}

/// What touches 16 words of global memory, from byte `Begin` of `in` and of `out`.
enum class How {
  scalars,
  vectors,
  cp_async,
  atomic_add,
  failing_cas,
  cas,
  bulk_copies,
  tma_boxes,
  tma_reduction,
  multicast,
  prefetch,
};

/// Reads and writes rows 0 to `Rows` - 1 of 4 rows of 4 words, each way as it can.
template <How H, int Rows> struct Touches {
  struct Params {
    Buffers buffers;
    TensorMap in, out;
  };
  struct SharedStorage {
    alignas(128) int tile[16];
    Mbarrier full;
  };
  static constexpr int threads = 32;
  static constexpr Dim3 cluster = {H == How::multicast ? 2 : 1, 1, 1};

  static constexpr bool async = H == How::bulk_copies || H == How::tma_boxes ||
                                H == How::tma_reduction || H == How::multicast ||
                                H == How::prefetch;

  void operator()(Params const& p, SharedStorage& smem) const {
    int const lane = lane_id();
    char* const in = p.buffers.in;
    char* const out = p.buffers.out;
    SharedAddr const tile = shared_address(smem.tile);
    if (async && lane < 16) st_shared(tile + 4 * lane, lane);
    if constexpr (async) {
      fence_proxy_async();
      SharedAddr const full = shared_address(&smem.full);
      if (lane == 0) mbarrier_init(full, 1);
      fence_mbarrier_init();
      if constexpr (cluster.x > 1) {
        tegula::cluster::sync();
      } else {
        warp::sync();
      }
      constexpr bool loads = H != How::tma_reduction && H != How::prefetch;
      if (lane == 0) {
        if (loads) mbarrier_arrive_expect_tx(full, H == How::bulk_copies ? 16 * Rows : 64);
        // loads: what lies before the tensor is filled
        TmaCoordinate<2> const at = {{0, Rows - 4}};
        if (H == How::bulk_copies) bulk_load(tile, in, 16 * Rows, full);
        if (H == How::tma_boxes) tma_load(tile, p.in, at, full);
        if (H == How::multicast && block_idx().x == 0) tma_load_multicast(tile, p.in, at, full, 3);
        if (H == How::prefetch) tma_prefetch(p.in, at);
        if (loads) mbarrier_wait_parity(full, 0);
        TmaCoordinate<2> const to = {{0, 4 - Rows}};  // what lies behind it is left out
        if (H == How::bulk_copies) bulk_store(out, tile, 16 * Rows);
        if (H == How::tma_boxes || (H == How::multicast && block_idx().x == 0))
          tma_store(p.out, to, tile);
        if (H == How::tma_reduction) tma_reduce<2, TmaReduce::add>(p.out, to, tile);
        bulk_commit_group();
        bulk_wait_group<0>();
      }
      if constexpr (cluster.x > 1) tegula::cluster::sync();
      return;
    }
    if (H == How::scalars && lane < 4 * Rows)
      st_global(out + 4 * lane, ld_global<int>(in + 4 * lane));
    if (H == How::vectors && lane < Rows)
      st_global(out + 16 * lane, ld_global<Vector<int, 4>>(in + 16 * lane));
    if constexpr (H == How::cp_async) {
      // The last row is cut off after two words, and read whole where there are four.
      if (lane < 4)
        cp_async_ca<16>(tile + 16 * lane, in + 16 * lane, lane < Rows ? 16 : lane == Rows ? 8 : 0);
      cp_async_commit_group();
      cp_async_wait_group<0>();
    }
    int* const words = reinterpret_cast<int*>(out);
    if (H == How::atomic_add && lane < 4 * Rows) red_add(words + lane, 1);
    if (H == How::failing_cas && lane < 4 * Rows) atom_cas(words + lane, 7, 1);
    if (H == How::cas && lane < 4 * Rows) atom_cas(words + lane, 0, 1);
  }
};

/// What of `in` and `out`, with zeros in both before, is found uncovered: the first coordinate of
/// each, "-" where nothing is.
template <How H, int Rows> std::string uncovered(sim::Options const& options) {
  Launcher launcher(options);
  launcher.machine.fill(launcher.buffers.out, 0, 4096);
  using Kernel = Touches<H, Rows>;
  TensorMapDescription map{.dtype = DType::s32,
                           .rank = 2,
                           .address = launcher.buffers.in,
                           .extents = {4, 4},
                           .strides = {16},
                           .box = {4, 4}};
  typename Kernel::Params params{launcher.buffers, sim::encode(map), {}};
  map.address = launcher.buffers.out;
  params.out = sim::encode(map);
  Layout const layout = "(4,4):(4,1)"_layout;
  sim::Report const report =
      sim::launch<Kernel>(launcher.machine, Kernel::cluster, params,
                          {launcher.words(launcher.buffers.in, layout, Coverage::read),
                           launcher.words(launcher.buffers.out, layout, Coverage::read),
                           launcher.words(launcher.buffers.out, layout, Coverage::written)});
  std::string in = "-", out = "-", out_written = "-";
  for (Finding const& f : report.findings) {
    std::string& of = f.kind == FindingKind::unwritten_output ? out_written
                      : f.buffer == "in"                      ? in
                                                              : out;
    EXPECT_TRUE(f.kind == FindingKind::unwritten_output || f.kind == FindingKind::unread_input)
        << report.text();
    of = f.coordinate.substr(0, f.coordinate.find(" of"));
  }
  return "in read " + in + "; out read " + out + "; out written " + out_written;
}

template <How H, int Rows> void expect_uncovered(std::string const& expected) {
  for_each_schedule([&](sim::Options const& options) {
    EXPECT_EQ((uncovered<H, Rows>(options)), expected) << static_cast<int>(H) << ", " << Rows;
  });
}

TEST(Coverage, EachKindOfAccessCounts) {
  std::string const none = "row 0, column 0";
  auto const text = [](std::string const& in, std::string const& out, std::string const& written) {
    return "in read " + in + "; out read " + out + "; out written " + written;
  };
  expect_uncovered<How::scalars, 4>(text("-", none, "-"));
  expect_uncovered<How::scalars, 3>(text("row 3, column 0", none, "row 3, column 0"));
  expect_uncovered<How::vectors, 4>(text("-", none, "-"));
  expect_uncovered<How::vectors, 3>(text("row 3, column 0", none, "row 3, column 0"));
  expect_uncovered<How::cp_async, 4>(text("-", none, none));
  expect_uncovered<How::cp_async, 3>(text("row 3, column 2", none, none));
  expect_uncovered<How::atomic_add, 4>(text(none, "-", "-"));
  expect_uncovered<How::atomic_add, 3>(text(none, "row 3, column 0", "row 3, column 0"));
  expect_uncovered<How::cas, 4>(text(none, "-", "-"));
  expect_uncovered<How::failing_cas, 4>(text(none, "-", none));
  expect_uncovered<How::bulk_copies, 4>(text("-", none, "-"));
  expect_uncovered<How::bulk_copies, 3>(text("row 3, column 0", none, "row 3, column 0"));
  expect_uncovered<How::tma_boxes, 4>(text("-", none, "-"));
  expect_uncovered<How::tma_boxes, 3>(text("row 3, column 0", none, none));
  expect_uncovered<How::tma_reduction, 4>(text(none, "-", "-"));
  expect_uncovered<How::tma_reduction, 3>(text(none, none, none));
  expect_uncovered<How::multicast, 4>(text("-", none, "-"));
  expect_uncovered<How::multicast, 3>(text("row 3, column 0", none, none));
  expect_uncovered<How::prefetch, 4>(text(none, none, none));
}

/// Reads `in` and writes `out` in place, a word a lane.
struct InPlace : Broken {
  void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() < 31) ld_global<int>(p.in + 4 * lane_id());
    st_global(p.in + 4 * lane_id(), 1);
  }
};

TEST(Coverage, ATensorMayBeReadAndWritten) {
  Launcher launcher;
  auto const as = [&](Coverage coverage) {
    return launcher.words(launcher.buffers.in, "(1,32):(32,1)"_layout, coverage);
  };
  only_uncovered(launcher.run<InPlace>({as(Coverage::written), as(Coverage::read)}),
                 FindingKind::unread_input, "nobody reads row 0, column 31 of in, one of 32");
}

/// Two warps race for a flag; the first writes a word that the second leaves out.
struct FirstComesFirst : Broken {
  static constexpr int threads = 64;
  static std::vector<GlobalTensor> tensors(Params const& p) {
    return {sim::global_tensor("out", reinterpret_cast<int*>(p.out), "1:1"_layout, {"element"},
                               Coverage::written)};
  }
  void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() != 0) return;
    bool const first = atom_exch(reinterpret_cast<int*>(p.in), 1) == 0;
    if (first && warp_id() == 0) st_global(p.out, 1);
  }
};

TEST(Coverage, AnExplorationFindsTheOrderThatLeavesAnElementOut) {
  sim::Machine machine;
  sim::Exploration const exploration = sim::explore(machine, [&] {
    Buffers const buffers{static_cast<char*>(machine.allocate(4096, "in")),
                          static_cast<char*>(machine.allocate(4096, "out"))};
    machine.fill(buffers.in, 0, 4096);
    sim::launch<FirstComesFirst>(machine, {}, buffers);
    machine.deallocate(buffers.in);
    machine.deallocate(buffers.out);
  });
  EXPECT_TRUE(exploration.complete);
  EXPECT_EQ(exploration.orders, 2);
  ASSERT_EQ(exploration.findings.size(), 1u) << exploration.text();
  EXPECT_EQ(exploration.findings[0].finding.kind, FindingKind::unwritten_output);
}

}  // namespace
}  // namespace tegula
