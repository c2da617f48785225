#include "correct_kernels.hpp"
#include "run_pipeline.hpp"

namespace tegula::detail {
namespace {

using namespace pipeline_kernels;

/// A pipeline kernel of one CTA or cluster whose consumers leave `words` words.
template <class Kernel> void add(std::vector<CorrectKernel>& all, int words) {
  all.push_back({"pipelines", sim::type_name<Kernel>(), [words](sim::Options const& options) {
                   return outcome_of([&](Outcome& outcome) {
                     int in = 1;
                     if constexpr (requires { Kernel::steps; }) in = kRow * Kernel::steps;
                     Values out(at(words));
                     outcome.report = pipeline_kernels::run<Kernel>(options, some_words(in), out);
                     outcome.output = bytes_of(out);
                   });
                 }});
}

template <class... Kernel> void add_rows(std::vector<CorrectKernel>& all) {
  auto const peers = []<class K>(K const&) {
    if constexpr (requires { K::peers; }) return K::peers;
    return 1;
  };
  (add<Kernel>(all, kRow * Kernel::steps * Kernel::consumers * peers(Kernel{})), ...);
}

template <class Kernel> void add_turns(std::vector<CorrectKernel>& all, int groups, int warps) {
  add<Kernel>(all, 1 + Kernel::rounds * groups * (warps + 1));
}

}  // namespace

void add_pipelines(std::vector<CorrectKernel>& all) {
  add_rows<TmaFed<1, 1>, TmaFed<2, 1>, TmaFed<3, 2>, TmaFed<4, 4>>(all);
  add_rows<Multicast<2, 1, 1>, Multicast<2, 2, 2>, Multicast<2, 3, 1>, Multicast<4, 2, 2>>(all);
  add_rows<ThreadFed<1, 1, 1, Writes::stores>, ThreadFed<3, 2, 1, Writes::stores>,
           ThreadFed<4, 2, 3, Writes::stores>, ThreadFed<2, 1, 1, Writes::cp_async>,
           ThreadFed<3, 2, 2, Writes::cp_async>, ThreadFed<4, 1, 3, Writes::cp_async>>(all);
  add_rows<StoreSide<1, 1>, StoreSide<2, 4>, StoreSide<3, 2>>(all);
  add_turns<MathOrder<1, 1>>(all, 1, 1);
  add_turns<MathOrder<2, 4>>(all, 2, 4);
  add_turns<MathOrder<3, 2>>(all, 3, 2);
}

}  // namespace tegula::detail
