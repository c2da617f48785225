#include "tegula/device/global_tensors.hpp"

#include "families.hpp"

namespace tegula::device {

std::vector<sim::GlobalTensor> describe(FamilyId family, void const* config, void const* params) {
  std::vector<sim::GlobalTensor> tensors;
  family.visit([&]<class F>(F) {
    tensors = FamilyTraits<F>::describe(*static_cast<typename F::Config const*>(config),
                                        *static_cast<typename F::Params const*>(params));
  });
  return tensors;
}

}  // namespace tegula::device
