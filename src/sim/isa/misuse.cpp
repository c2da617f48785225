#include <stdexcept>
#include <utility>

#include "machine/cluster.hpp"
#include "machine/current_cta.hpp"
#include "tegula/sim/hooks.hpp"

/// What the layers above the instructions refuse while a kernel runs.
namespace tegula::sim {

void misuse(std::string sentence, SourceLocation where) {
  if (running_cta() == nullptr) throw std::logic_error(sentence);
  Cta& cta = this_cta();
  cta.fail(FindingKind::invalid_operand, where, cta.here(), std::move(sentence));
}

void outside_of_tensor(std::string const& sentence, SourceLocation where) {
  if (running_cta() == nullptr) throw std::logic_error(sentence);
  Cta& cta = this_cta();
  if (cta.checking()) cta.report(FindingKind::out_of_bounds, where, cta.here(), "", "", sentence);
}

}  // namespace tegula::sim
