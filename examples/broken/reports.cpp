#include "gallery.hpp"

namespace tegula::broken {

std::vector<Schedule> schedules() {
  using enum sim::Interleaving;
  std::vector<Schedule> all;
  for (auto const completion :
       {sim::Completion::last, sim::Completion::first, sim::Completion::random}) {
    for (auto const interleaving : {one_warp_ahead, one_warp_behind, round_robin, random}) {
      bool const by_seed = completion == sim::Completion::random || interleaving == random ||
                           interleaving == one_warp_behind;
      for (std::uint64_t seed = 0; seed < (by_seed ? 4u : 1u); ++seed)
        all.push_back({completion, interleaving, seed});
    }
  }
  return all;
}

std::string to_string(Schedule const& schedule) {
  return "completion " + std::string(sim::to_string(schedule.completion)) + ", interleaving " +
         std::string(sim::to_string(schedule.interleaving)) + ", seed " +
         std::to_string(schedule.seed);
}

std::string findings_text(sim::Report const& report) {
  std::string text;
  std::string const kernel = report.kernel.substr(report.kernel.rfind(':') + 1);
  for (sim::Finding const& finding : report.findings)
    text += sim::to_string(finding, kernel) + "\n";
  return text;
}

sim::Report report_at(Exhibit const& exhibit, bool repaired, Schedule const& schedule) {
  sim::Options options = exhibit.options;
  options.completion = schedule.completion;
  options.interleaving = schedule.interleaving;
  options.seed = schedule.seed;
  return exhibit.run(options, repaired);
}

std::string kinds_of(sim::Report const& report) {
  std::string kinds;
  for (sim::Finding const& finding : report.findings) {
    std::string const kind(sim::to_string(finding.kind));
    if ((", " + kinds + ", ").find(", " + kind + ", ") == std::string::npos)
      kinds += (kinds.empty() ? "" : ", ") + kind;
  }
  return kinds;
}

}  // namespace tegula::broken
