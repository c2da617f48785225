#pragma once

#include <string>
#include <vector>

#include "family_traits.hpp"
#include "gemm_sm100.hpp"
#include "tegula/device/launch.hpp"

namespace tegula::device {

/// gemm_sm100's, but for the scales and what is called otherwise.
template <> struct FamilyTraits<ScaledGemmSm100Family> : FamilyTraits<GemmSm100Family> {
  using Base = FamilyTraits<GemmSm100Family>;

  /// A problem without block scales is refused by `check`, as one of another type is.
  static std::string obstacle(GemmArguments const& g, DeviceProperties const& device) {
    return g.block_scale.block == 0 ? std::string() : Base::obstacle(g, device);
  }

  static char const* unwanted(GemmConstraints wanted, GemmArguments const& g,
                              GemmSm100Config const& c, int number) {
    if (wanted.kernel && *wanted.kernel != scaled_gemm_sm100) return "another kernel is asked for";
    wanted.kernel.reset();
    return Base::unwanted(wanted, g, c, number);
  }

  static GemmChoice predict(GemmArguments const& g, GemmSm100Config const& c,
                            DeviceProperties const& device, GemmConstraints const& wanted,
                            GemmCostModel const& model) {
    GemmChoice choice = Base::predict(g, c, device, wanted, model);
    choice.kernel = scaled_gemm_sm100;
    return choice;
  }

  static ScaledGemmSm100Params lower(Machine const& machine, GemmArguments const& g,
                                     GemmChoice const& choice);

  static std::vector<sim::GlobalTensor> describe(ScaledGemmSm100Config const& c,
                                                 ScaledGemmSm100Params const& params);

  static std::string name(GemmSm100Config const& c) { return "scaled_" + Base::name(c); }
};

}  // namespace tegula::device
