#include "tegula/sim/schedule.hpp"

namespace tegula::sim {

std::string_view to_string(Completion completion) {
  switch (completion) {
    case Completion::last:
      return "last";
    case Completion::first:
      return "first";
    case Completion::random:
      break;
  }
  return "random";
}

std::string_view to_string(Interleaving interleaving) {
  switch (interleaving) {
    case Interleaving::one_warp_ahead:
      return "one_warp_ahead";
    case Interleaving::round_robin:
      return "round_robin";
    case Interleaving::one_warp_behind:
      return "one_warp_behind";
    case Interleaving::random:
      break;
  }
  return "random";
}

}  // namespace tegula::sim
