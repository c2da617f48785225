#include "program.hpp"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "command_line.hpp"
#include "source.hpp"

namespace tegula::broken {
namespace {

/// The report at the default schedule.
sim::Report report_of(Exhibit const& exhibit, bool repaired) {
  return exhibit.run(exhibit.options, repaired);
}

/// The kernels by chapter, each with the rule that it breaks.
void list(Gallery const& gallery) {
  for (Chapter const& chapter : gallery.chapters) {
    std::printf("%s\n", chapter.title.c_str());
    for (Exhibit const& exhibit : chapter.exhibits) {
      std::printf("  %-28s %s (%s)\n", exhibit.name.c_str(),
                  read_source(gallery.folder / chapter.folder, exhibit.name).rule.c_str(),
                  kinds_of(report_of(exhibit, false)).c_str());
    }
    if (&chapter != &gallery.chapters.back()) std::printf("\n");
  }
}

/// The kernels by what is found in them; whether there is one for each kind. (A C++ exception,
/// which no GPU has, has none.)
bool list_by_kind(Gallery const& gallery) {
  std::vector<std::pair<std::string, std::string>> kinds_by_name;  // each between commas
  for (Chapter const& chapter : gallery.chapters) {
    for (Exhibit const& exhibit : chapter.exhibits)
      kinds_by_name.emplace_back(exhibit.name, ", " + kinds_of(report_of(exhibit, false)) + ", ");
  }
  bool complete = true;
  for (int i = 0; i <= static_cast<int>(sim::FindingKind::trap); ++i) {
    std::string const kind(sim::to_string(static_cast<sim::FindingKind>(i)));
    std::string names;
    for (auto const& [name, kinds] : kinds_by_name) {
      if (kinds.find(", " + kind + ", ") != std::string::npos)
        names += (names.empty() ? "" : ", ") + name;
    }
    complete = complete && !names.empty();
    std::printf("%s", wrapped(kind + ": " + (names.empty() ? "none" : names), 100, "").c_str());
  }
  return complete;
}

/// The kernel with its line numbers, what is found in it, and at how many schedules nothing is
/// found once it is repaired.
void show(Gallery const& gallery, Chapter const& chapter, Exhibit const& exhibit) {
  Source const source = read_source(gallery.folder / chapter.folder, exhibit.name);
  std::printf("%s/%s.hpp\n\n", chapter.folder.c_str(), exhibit.name.c_str());
  for (std::string const& line : source.about) std::printf("%s\n", line.c_str());
  std::printf("\n");
  for (std::size_t i = 0; i < source.lines.size(); ++i) {
    bool const empty = source.lines[i].empty();
    std::printf("%4d%s%s\n", source.first_line + static_cast<int>(i), empty ? "" : "  ",
                source.lines[i].c_str());
  }
  std::printf("\n%s", wrapped(findings_text(report_of(exhibit, false)), 100, "").c_str());
  std::size_t clean = 0;
  for (Schedule const& schedule : schedules()) clean += report_at(exhibit, true, schedule).ok();
  std::printf("repaired: clean at %zu of %zu schedules\n", clean, schedules().size());
}

/// Whether the kernel gives the report that stands beside it, something at every schedule (unless
/// it says otherwise), and nothing once it is repaired; says what does not.
bool holds(Gallery const& gallery, Chapter const& chapter, Exhibit const& exhibit) {
  bool right = true;
  auto const wrong = [&](std::string const& what, std::string const& report) {
    std::printf("%s: %s\n%s", exhibit.name.c_str(), what.c_str(),
                wrapped(report, 100, "    ").c_str());
    right = false;
  };
  std::string const expected = read_source(gallery.folder / chapter.folder, exhibit.name).report;
  std::string const found = findings_text(report_of(exhibit, false));
  if (squeezed(found) != expected) wrong("the report is not the one in its file, but", found);
  for (Schedule const& schedule : schedules()) {
    std::string const mended = findings_text(report_at(exhibit, true, schedule));
    if (!mended.empty()) wrong("found in the repaired kernel at " + to_string(schedule), mended);
    if (exhibit.at_every_schedule && report_at(exhibit, false, schedule).ok())
      wrong("nothing is found at " + to_string(schedule), "");
  }
  return right;
}

/// Calls f(chapter, exhibit) with the named ones; with all where no name is given. Throws
/// std::runtime_error for a name that there is not.
void for_each(Gallery const& gallery, std::vector<std::string> const& names,
              std::function<void(Chapter const&, Exhibit const&)> const& f) {
  auto const wanted = [&](std::string const& name) {
    return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
  };
  std::vector<std::string> unknown = names;
  for (Chapter const& chapter : gallery.chapters) {
    for (Exhibit const& exhibit : chapter.exhibits) {
      std::erase(unknown, exhibit.name);
      if (wanted(exhibit.name)) f(chapter, exhibit);
    }
  }
  if (!unknown.empty())
    throw std::runtime_error(unknown[0] + ": no kernel of that name (see " + gallery.program +
                             " --list)");
}

/// Writes the page, or says whether it is as it should be.
bool page(Gallery const& gallery, bool writes, bool tests) {
  std::string const text = gallery.page();
  if (writes) {
    write_file(gallery.page_file, text);
  } else if (!tests) {
    std::printf("%s", text.c_str());
  } else if (text != read_file(gallery.page_file)) {
    std::printf(
        "%s is not what %s --page prints: after `%s --all --write`, `%s --page --write` writes it\n",
        gallery.page_file.filename().c_str(), gallery.program.c_str(), gallery.program.c_str(),
        gallery.program.c_str());
    return false;
  }
  return true;
}

int run(Gallery const& gallery, int argc, char** argv) {
  tool::CommandLine const line(gallery.description, gallery.program);
  std::vector<std::string> names;
  bool lists = false, kinds = false, all = false, tests = false, writes = false, pages = false;
  line.add_option("NAME", names, "kernels to show");
  line.add_flag("--list", lists, "the kernels by chapter, each with the rule that it breaks");
  line.add_flag("--kinds", kinds,
                "the kernels by kind of finding; exits with 1 where a kind has none");
  line.add_flag("--all", all, "every kernel");
  line.add_flag("--test", tests, "run at every schedule and compare with the reports in the files");
  line.add_flag("--write", writes, "write the reports into the files");
  if (gallery.page != nullptr)
    line.add_flag(
        "--page", pages,
        "print the page of documentation; with --test, compare it; with --write, write it");
  if (auto const status = line.read(argc, argv)) return *status;
  if (lists) {
    list(gallery);
    return 0;
  }
  if (kinds) return list_by_kind(gallery) ? 0 : 1;
  if (pages) return page(gallery, writes, tests) ? 0 : 1;
  if (names.empty() && !all) {
    std::printf("%s", line.help().c_str());
    return 1;
  }
  bool right = true;
  bool first = true;
  auto const wanted = all ? std::vector<std::string>() : names;
  for_each(gallery, wanted, [&](Chapter const& chapter, Exhibit const& exhibit) {
    if (writes) {
      write_report(gallery.folder / chapter.folder, exhibit.name,
                   findings_text(report_of(exhibit, false)));
    } else if (tests) {
      right = holds(gallery, chapter, exhibit) && right;
    } else {
      if (!first) std::printf("\n");
      show(gallery, chapter, exhibit);
    }
    first = false;
  });
  return right ? 0 : 1;
}

}  // namespace

int run_program(Gallery const& gallery, int argc, char** argv) {
  try {
    return run(gallery, argc, argv);
  } catch (std::exception const& error) {
    std::fprintf(stderr, "%s: %s\n", gallery.program.c_str(), error.what());
    return 1;
  }
}

}  // namespace tegula::broken
