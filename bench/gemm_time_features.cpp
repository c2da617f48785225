// What the correction of gemm_sm90's predicted time is learned from: of each line of the standard
// input, a problem and a configuration
//
//     MULTIPROCESSORS CLOCK MEMORY L2 TYPE m n k block_m block_n SCHEDULE cluster_m cluster_n
//     split_k in_parts narrow_n store_buffers min_ctas_per_sm transposed parts
//
// writes the time that the model predicts, uncorrected, in microseconds, and the features, as raw
// 32-bit floats. The GPU's clock is in GHz, its memory's speed in TB/s, its L2 in MB. TYPE: bf16 or
// e4m3, all operands K-major and contiguous, D bf16. SCHEDULE by its number.
// (scripts/fit_gemm_times.py runs it.)

#include <cstdint>
#include <cstdio>
#include <iostream>
#include <limits>
#include <string>

#include "families/gemm_sm90.hpp"
#include "families/gemm_sm90_correction.hpp"
#include "tegula/device/gemm_plan.hpp"

int main() {
  using namespace tegula;
  std::ios::sync_with_stdio(false);
  DeviceProperties device = properties_of(sim::Generation::sm90);
  GemmCostModel model;
  model.sm90.corrected = false;
  while (std::cin >> device.multiprocessors) {
    std::string type;
    GemmArguments g{.out = DType::bf16,
                    .workspace_bytes = std::numeric_limits<std::int64_t>::max()};
    GemmSm90Config c;
    int schedule = 0, parts = 1;
    std::cin >> device.clock_ghz >> device.memory_tb_per_s >> device.l2_mb >> type >> g.m >> g.n >>
        g.k >> c.block_m >> c.block_n >> schedule >> c.cluster_m >> c.cluster_n >> c.split_k >>
        c.in_parts >> c.narrow_n >> c.store_buffers >> c.min_ctas_per_sm >> c.transposed >> parts;
    if (!std::cin || (type != "bf16" && type != "e4m3")) {
      std::fprintf(stderr, "a line of '%s' is not: the GPU, TYPE m n k, the configuration, parts\n",
                   type.c_str());
      return 1;
    }
    g.in = c.a = c.b = type == "bf16" ? DType::bf16 : DType::e4m3;
    c.schedule = static_cast<Schedule>(schedule);
    GemmConstraints wanted;
    if (c.in_parts) wanted.split_k = parts;
    GemmChoice const choice = predict(g, c, device, wanted, model);
    device::GemmSm90Features const features = device::gemm_sm90_features(
        device::as_computed_by(c, with_defaults(g)), c, choice, stages(c), device);
    auto const total = static_cast<float>(choice.cost.total);
    std::fwrite(&total, sizeof total, 1, stdout);
    std::fwrite(features.data(), sizeof features, 1, stdout);
  }
}
