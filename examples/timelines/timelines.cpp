// The timelines of docs/hopper_gemm.md and docs/hopper_attention.md: tegula_timelines FOLDER writes
// them there.

#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>

#include "attention_timeline.hpp"
#include "gemm_timeline.hpp"

namespace {

using namespace tegula;

void write(std::string const& folder, std::string const& name, sim::Trace const& trace) {
  std::string const path = folder + "/timeline_" + name + ".svg";
  std::ofstream file(path);
  file << to_svg(trace);
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path);
  std::printf("%s: %.0f cycles\n", path.c_str(), trace.cycles());
}

constexpr GemmSm90Config square(Schedule schedule) {
  return {.block_m = 128, .block_n = 128, .schedule = schedule};
}

/// With a stage more than the table's, so that a consumer that is alone does not wait for keys.
constexpr AttentionSm90Config overlapped(AttentionOverlap overlap) {
  return {.head_dim = 128, .head_dim_v = 128, .block_n = 128, .stages = 3, .overlap = overlap};
}

void write_attention(std::string const& folder) {
  // The first two of one consumer, so that nothing but its own products covers its softmax.
  std::string const blocks = " rows over six blocks of 128 keys, head dim 128";
  write(folder, "attention_none",
        attention_timeline<overlapped(AttentionOverlap::none)>(64, 6, "no overlap: 64" + blocks));
  write(folder, "attention_intra",
        attention_timeline<overlapped(AttentionOverlap::intra_warpgroup)>(
            64, 6, "overlap within a warpgroup: 64" + blocks));
  write(folder, "attention_pingpong",
        attention_timeline<overlapped(AttentionOverlap::pingpong)>(128, 6,
                                                                   "ping-pong: 128" + blocks));
}

void write_gemm(std::string const& folder) {
  // Five stages: two tiles of six steps go more than twice round.
  constexpr GemmSm90Config wide = {.block_m = 64, .block_n = 256, .schedule = Schedule::basic};
  write(folder, "ring",
        gemm_timeline<wide>({.tiles_m = 2, .k = 384, .barriers = true},
                            "two tiles of 64 x 256, K = 384: the ring of stages"));
  TimelineProblem const four = {.tiles_m = 4};
  write(folder, "basic",
        gemm_timeline<square(Schedule::basic)>(four, "basic: four tiles of 128 x 128, K = 256"));
  write(folder, "cooperative",
        gemm_timeline<square(Schedule::cooperative)>(
            four, "cooperative: four tiles of 128 x 128, K = 256"));
  write(folder, "pingpong",
        gemm_timeline<square(Schedule::pingpong)>(four,
                                                  "ping-pong: four tiles of 128 x 128, K = 256"));
  // One cluster of the 66 that share L2 on a full GPU.
  constexpr GemmSm90Config alone = {.block_m = 128, .block_n = 256};
  constexpr GemmSm90Config paired = {.block_m = 128, .block_n = 256, .cluster_m = 2};
  write(folder, "alone",
        gemm_timeline<alone>(
            {.tiles_m = 132, .k = 512, .clusters = 132},
            "132 CTAs, each a tile of 128 x 256 for itself, K = 512: the first two"));
  write(folder, "multicast",
        gemm_timeline<paired>({.tiles_m = 66, .k = 512, .clusters = 66},
                              "66 clusters of two such tiles side by side: the first"));
  constexpr GemmSm90Config split = {
      .block_m = 64, .block_n = 128, .schedule = Schedule::basic, .split_k = 2};
  write(folder, "split_k",
        gemm_timeline<split>({.k = 1024}, "one tile of 64 x 128, K = 1024 split between two CTAs"));
}

}  // namespace

int main(int count, char** arguments) {
  try {
    std::string const folder = count > 1 ? arguments[1] : ".";
    write_gemm(folder);
    write_attention(folder);
  } catch (std::exception const& e) {
    std::fprintf(stderr, "tegula_timelines: %s\n", e.what());
    return 1;
  }
}
