#pragma once

#include <array>

#include "tegula/device/gemm_plan.hpp"

/// What the model of gemm_sm90's time does not know of, learned from launches that were timed.
///
/// The model adds up what it can give a reason for; what is left, some 5 % of a launch, goes with
/// how its terms meet: a loop that waits for memory in clusters of eight is another one than a loop
/// that waits for the tensor core alone. Gradient-boosted trees tell these apart, by the predicted
/// time, its terms' shares, the tile and what it fills. scripts/fit_gemm_times.py grows them from
/// bench/results/gemm_sm90_times.jsonl.xz; docs/gemm.md says how well they choose.
namespace tegula::device {

/// What the trees ask about a launch, in the order of gemm_sm90_features.
inline constexpr int kGemmSm90Features = 32;
using GemmSm90Features = std::array<float, kGemmSm90Features>;

/// Those of a choice whose cost is the model's alone. `g`: as the configuration computes it;
/// `ring`: the stages of a CTA.
GemmSm90Features gemm_sm90_features(GemmArguments const& g, GemmSm90Config const& c,
                                    GemmChoice const& choice, int ring,
                                    DeviceProperties const& device);

/// What such a launch takes, of what the model says: about 1.
double gemm_sm90_correction(GemmSm90Features const& features);

}  // namespace tegula::device
