#pragma once

#include "tegula/arch/source_location.hpp"
#include "tegula/sim/hooks.hpp"

namespace tegula::sim {

class Cta;
struct Warpgroup;

/// Registers of a thread that are a warpgroup's wgmma's until it has waited for them: accumulators,
/// and A.
int registers_in_flight(Warpgroup const& group);

/// The current thread accesses a register: a finding, where a wgmma in flight owns it.
void check_wgmma_register(Cta& cta, void const* place, SourceLocation where);
/// Likewise of a fragment of the thread, its registers from `first` on. Those of one that is
/// destroyed are no more the operations'.
void use_wgmma_fragment(Cta& cta, void const* first, int bytes, FragmentUse use, bool report);

/// What happens to a fragment, as a verb ("goes out of scope") and as a noun.
struct FragmentUseText {
  char const* verb;
  char const* noun;
};
FragmentUseText text_of(FragmentUse use);

}  // namespace tegula::sim
