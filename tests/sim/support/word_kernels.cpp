#include "word_kernels.hpp"

#include "atomic_kernels.hpp"
#include "copy_kernels.hpp"
#include "hopper_kernels.hpp"
#include "register_kernels.hpp"
#include "run_kernel.hpp"
#include "synchronisation_kernels.hpp"
#include "vocabulary_kernels.hpp"

namespace tegula {
namespace {

template <class Kernel> WordKernel word_kernel() {
  return {sim::type_name<Kernel>(), Kernel::in_words, Kernel::out_words, &run_kernel<Kernel>,
          requires {Kernel::polls;
}
};  // namespace
}  // namespace tegula

template <class... Kernel>
std::vector<WordKernel> word_kernels(instruction_kernels::Kernels<Kernel...>) {
  return {word_kernel<Kernel>()...};
}

}  // namespace

std::vector<WordKernel> const& all_instruction_kernels() {
  static std::vector<WordKernel> const all = word_kernels(instruction_kernels::AllKernels{});
  return all;
}

std::vector<WordKernel> const& all_hopper_kernels() {
  static std::vector<WordKernel> const all = word_kernels(hopper_kernels::AllKernels{});
  return all;
}

std::vector<WordKernel> const& all_vocabulary_kernels() {
  static std::vector<WordKernel> const all = word_kernels(vocabulary_kernels::AllKernels{});
  return all;
}

std::vector<WordKernel> const& all_synchronisation_kernels() {
  static std::vector<WordKernel> const all = word_kernels(synchronisation_kernels::AllKernels{});
  return all;
}

std::vector<WordKernel> const& all_atomic_kernels() {
  static std::vector<WordKernel> const all = word_kernels(atomic_kernels::AllKernels{});
  return all;
}

std::vector<WordKernel> const& all_copy_kernels() {
  static std::vector<WordKernel> const all = word_kernels(copy_kernels::AllKernels{});
  return all;
}

std::vector<WordKernel> const& all_register_kernels() {
  static std::vector<WordKernel> const all = word_kernels(register_kernels::AllKernels{});
  return all;
}

}  // namespace tegula
