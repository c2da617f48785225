#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tegula/sim/machine.hpp"

/// The gallery of broken kernels: what is in it, and how each is run.
namespace tegula::broken {

/// One kernel of the gallery; its file is FOLDER/NAME.hpp.
struct Exhibit {
  std::string name;
  sim::Report (*run)(sim::Options options, bool repaired);
  sim::Options options;    ///< that it needs, beside the defaults
  bool at_every_schedule;  ///< whether it is found whatever the schedule
};

struct Chapter {
  std::string folder;
  std::string title;
  std::vector<Exhibit> exhibits;
};

/// The chapters, in the order in which they are read.
std::vector<Chapter> const& chapters();

/// A schedule, and words for it.
struct Schedule {
  sim::Completion completion;
  sim::Interleaving interleaving;
  std::uint64_t seed;
};
std::string to_string(Schedule const& schedule);

/// Those that every kernel is run at: each completion with each interleaving, with four seeds where they take
/// one.
std::vector<Schedule> schedules();

/// The findings of a report as lines, each with its place.
std::string findings_text(sim::Report const& report);

}  // namespace tegula::broken
