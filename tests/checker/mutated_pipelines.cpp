#include "mutated_kernels.hpp"
#include "run_pipeline.hpp"

namespace tegula::mutants {
namespace {

using namespace pipeline_kernels;

/// A kernel of one CTA or cluster whose consumers leave `words` words.
template <class Kernel> MutatedKernel pipeline(std::string name, int words) {
  return {std::move(name), "pipelines", [words](sim::Options options) {
            options.throw_on_finding = false;
            int in = 1;
            if constexpr (requires { Kernel::steps; }) in = kRow * Kernel::steps;
            Values out(at(words));
            Outcome outcome;
            outcome.report = pipeline_kernels::run<Kernel>(options, some_words(in), out);
            auto const* const bytes = reinterpret_cast<std::uint8_t const*>(out.data());
            outcome.output.assign(bytes, bytes + 4 * out.size());
            return outcome;
          }};
}

template <class Kernel> MutatedKernel rows(std::string name, int ctas = 1) {
  return pipeline<Kernel>(std::move(name), kRow * Kernel::steps * Kernel::consumers * ctas);
}

}  // namespace

std::vector<MutatedKernel> mutated_pipelines() {
  return {rows<TmaFed<2, 2>>("tma_fed"),
          rows<Multicast<2, 2, 1>>("multicast", 2),
          rows<ThreadFed<3, 2, 1, Writes::stores>>("thread_fed_by_stores"),
          rows<ThreadFed<3, 2, 2, Writes::cp_async>>("thread_fed_by_cp_async"),
          rows<StoreSide<2, 2>>("store_side"),
          pipeline<MathOrder<2, 2>>("turns", 1 + MathOrder<2, 2>::rounds * 2 * 3),
          pipeline<MathOrder<3, 1>>("turns_of_three", 1 + MathOrder<3, 1>::rounds * 3 * 2)};
}

}  // namespace tegula::mutants
