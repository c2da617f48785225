#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tegula/sim/machine.hpp"

/// Galleries of broken kernels: what is in them, and how each kernel is run.
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

/// A gallery, which is a program.
struct Gallery {
  std::string program;           ///< its name
  std::string description;       ///< for its help
  std::filesystem::path folder;  ///< where the chapters' folders are
  std::vector<Chapter> chapters;
  std::string (*page)() = nullptr;  ///< the page of documentation that it writes, where it has one
  std::filesystem::path page_file;  ///< where that page is
};

/// The chapters of the gallery of broken kernels, in the order in which they are read.
std::vector<Chapter> const& chapters();
Gallery const& gallery();

/// A schedule, and words for it.
struct Schedule {
  sim::Completion completion;
  sim::Interleaving interleaving;
  std::uint64_t seed;
};
std::string to_string(Schedule const& schedule);

/// Those that every kernel is run at: each completion with each interleaving, with four seeds where
/// they take one.
std::vector<Schedule> schedules();

/// The findings of a report as lines, each with its place.
std::string findings_text(sim::Report const& report);

/// The report of a kernel at a schedule.
sim::Report report_at(Exhibit const& exhibit, bool repaired, Schedule const& schedule);

/// The kinds of a report's findings, each once, with commas.
std::string kinds_of(sim::Report const& report);

}  // namespace tegula::broken
