#include "kernel_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "output.hpp"
#include "tegula/io/text.hpp"

namespace tegula::tool {

using nlohmann::ordered_json;

std::string to_string(Asked const& asked) {
  std::string text;
  for (auto const& [option, value] : asked)
    if (!value.empty()) text += fmt::format("{}{} {}", text.empty() ? "" : " ", option, value);
  return text;
}

namespace {

/// "--out-type must be bf16 or f32, or --dtype f16"; empty where no alternative is computed.
std::string computed_alternatives(std::vector<Alternative> const& alternatives, bool as_asked) {
  std::vector<std::pair<std::string, std::vector<std::string>>> options;
  for (auto const& [option, value, computed] : alternatives) {
    if (!computed(as_asked)) continue;
    if (options.empty() || options.back().first != option) options.push_back({option, {}});
    options.back().second.push_back(value);
  }
  std::string all;
  for (auto const& [option, values] : options)
    all += all.empty() ? fmt::format("{} must be {}", option, list_of(values))
                       : fmt::format(", or {} {}", option, list_of(values));
  return all;
}

}  // namespace

void require_computed(Asked const& given, Asked const& asked,
                      std::vector<Alternative> const& alternatives,
                      std::function<void()> const& refuse) {
  try {
    refuse();
  } catch (argument_error const& error) {
    std::string remedy = "`tegula info` lists what there is";
    std::string const choice = to_string(asked);
    if (std::string const with = computed_alternatives(alternatives, true); !with.empty())
      remedy = "With the other options " + with;
    else if (std::string const without =
                 choice.empty() ? "" : computed_alternatives(alternatives, false);
             !without.empty())
      remedy = fmt::format("Without {} {}", choice, without);
    std::string const said = to_string(given);
    throw argument_error(
        fmt::format("{}{}{} {}.", said, said.empty() ? "" : ": ", error.what(), remedy));
  }
}

Said said(Extent const& extent) {
  bool const by_option_alone = extent.said_by.find(' ') == std::string::npos;
  return {extent.name, extent.value == 0 ? ""
                       : by_option_alone ? fmt::format("{} {}", extent.said_by, extent.value)
                                         : extent.said_by};
}

std::string options_in(std::string_view sentence, std::vector<Said> const& all) {
  auto const in_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  auto const speaks_of = [&](std::string_view field) {
    for (auto at = sentence.find(field); at != std::string_view::npos;
         at = sentence.find(field, at + 1)) {
      std::string_view const rest = sentence.substr(at + field.size());
      bool const begins = at == 0 || !in_name(sentence[at - 1]);
      if (begins && (rest.starts_with(" is ") || rest.starts_with(" has ") ||
                     rest.starts_with(" * ") || rest.starts_with(" / ")))
        return true;
    }
    return false;
  };
  std::string text;
  for (Said const& one : all)
    if (!one.text.empty() && speaks_of(one.field) && text.find(one.text) == std::string::npos)
      text += (text.empty() ? "" : " ") + one.text;
  return text;
}

double time_launches(Machine const& machine, int repeat, std::function<void()> const& launch) {
  if (!machine.is_simulated()) launch();
  Event begin = machine.create_event(), end = machine.create_event();
  begin.record();
  for (int i = 0; i < repeat; ++i) launch();
  end.record();
  machine.synchronize();
  return milliseconds(begin, end) / repeat;
}

double checked_launches(Machine const& machine, MachineOptions const& options, ProgressBar& bar,
                        int repeat, bool json, std::function<void()> const& launch) {
  auto const write_report = [&] {
    auto const counters =
        options.report_without_counters ? sim::Counters::left_out : sim::Counters::shown;
    if (!options.report.empty())
      write_output("--report", options.report, machine.last_report().value().json(counters) + "\n");
  };
  int launched = machine.is_simulated() ? 0 : -1;  // a GPU is warmed up first
  try {
    double const milliseconds = time_launches(machine, repeat, [&] {
      bar.begin_launch(launched++, repeat);
      launch();
    });
    bar.clear();
    write_report();
    return milliseconds;
  } catch (sim::CheckError const& error) {
    bar.clear();
    std::size_t const found = error.report().findings.size();
    std::string const sentence = fmt::format("the checker found {} in {}",
                                             io::counted(found, "fault"), error.report().kernel);
    say("tegula: {}\n{}\n", sentence, error.what());
    write_report();
    if (json)
      print("{}\n",
            dump({{"error", sentence}, {"report", ordered_json::parse(error.report().json())}}));
    throw reported_failure();
  }
}

namespace {
constexpr double kElements = 1 << 24;  // checked at most, if rows have no more
}

double bytes_of_checked_rows(std::int64_t total, std::int64_t elements) {
  double const row = static_cast<double>(elements);
  return 3 * sizeof(double) * std::min(static_cast<double>(total) * row, std::max(kElements, row));
}

std::vector<std::int64_t> rows_to_check(std::int64_t total, double work, std::int64_t elements) {
  constexpr double kWork = 4e9;
  double const most =
      std::min(kWork / std::max(1.0, work), kElements / static_cast<double>(elements));
  return reference::some_rows(total, static_cast<std::int64_t>(std::max(1.0, most)));
}

void Verdict::tell_losses(char const* operand, DType type, Losses const& lost) {
  if (!lost.any()) return;
  problem["lost"][operand] = {
      {"beyond_range", lost.beyond}, {"became_zero", lost.zero}, {"became_nan", lost.nan}};
  std::string text;
  for (auto const& [count, what] : {std::pair(lost.beyond, "lay beyond its range"),
                                    {lost.zero, "became zero"},
                                    {lost.nan, "became NaN"}})
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, what);
  notes.push_back(
      fmt::format("{} lost values when it was rounded to {}: {}", operand, to_string(type), text));
}

namespace {

/// What a comparison that is within its bounds does not say: where there are none, and where
/// numbers are missing.
std::string beyond_bounds(reference::Comparison const& c) {
  std::string text;
  if (c.unbounded > 0)
    text += fmt::format(
        "; {} no bound, for numbers on the way to them may be beyond what their types hold",
        c.unbounded == 1 ? "1 result has" : fmt::format("{} results have", c.unbounded));
  if (c.not_finite > 0)
    text += fmt::format(
        "; {} NaN or infinite, and finite in float64",
        c.not_finite == 1 ? "1 result is" : fmt::format("{} results are", c.not_finite));
  return text;
}

}  // namespace

void print_verdict(Verdict const& v, Machine const& machine, bool json, bool lines) {
  bool within = true, bounded = true;
  for (auto const& part : v.parts) {
    within = within && part.comparison.within();
    bounded = bounded && part.comparison.unbounded == 0;
  }
  auto const report = machine.last_report();
  double const rate = v.milliseconds > 0 ? 2 * v.multiply_adds / (v.milliseconds * 1e-3) : 0;

  if (json) {
    ordered_json out = v.problem;
    out["machine"] = machine.name();
    out["configuration"] = {{"index", v.configuration_index}, {"name", v.configuration}};
    out["milliseconds"] = v.milliseconds;
    out["flops_per_second"] = rate;
    out["rows"] = v.rows;
    out["rows_checked"] = v.rows_checked;
    for (auto const& part : v.parts) {
      auto const finite = [](double x) {
        return std::isfinite(x) ? ordered_json(x) : ordered_json(fmt::format("{}", x));
      };
      ordered_json& of_part = out[part.name];
      of_part = {{"max_error", finite(part.comparison.max_error)},
                 {"max_error_over_bound", finite(part.comparison.max_ratio)},
                 {"without_bound", part.comparison.unbounded},
                 {"not_finite", part.comparison.not_finite}};
      if (v.rows_checked == 0) continue;
      of_part["worst"] = part.worst;
      of_part["worst_result"] = finite(part.comparison.worst_result);
    }
    out["within_bound"] = within;
    if (!v.output.empty()) out["output"] = v.output;
    if (report) out["report"] = ordered_json::parse(report->json());
    print("{}\n", dump(out));
  } else {
    print("{}\n{}\nconfiguration {}: {}\n", machine.name(), v.headline, v.configuration_index,
          v.configuration);
    print("{:.3f} ms, {:.4g} {}FLOP/s\n", v.milliseconds, rate >= 1e12 ? rate * 1e-12 : rate * 1e-9,
          rate >= 1e12 ? "T" : "G");
    if (v.rows_checked == 0) print("no rows: nothing to compute or to check\n");
    for (auto const& part : v.parts)
      if (v.rows_checked > 0)
        print(
            "{}: error at most {:.3g}, {:.2f} of its bound at {} ({} of {} checked against float64){}\n",
            part.name, part.comparison.max_error, part.comparison.max_ratio, part.worst,
            v.rows_checked, io::counted(v.rows, "row"), beyond_bounds(part.comparison));
    if (report) {
      sim::LineCounters const& t = report->total;
      print(
          "counted: {}, of them {} mma.sync and {} wgmma with {}; shared memory {} in {}, {} of them bank conflicts; "
          "global memory {} in {}\n",
          io::counted(t.instructions, "warp instruction"),
          report->instruction("mma.sync").instructions,
          report->instruction("wgmma.mma_async").instructions,
          io::counted(t.fused_multiply_adds, "multiply-add"), io::counted(t.shared_bytes, "byte"),
          io::counted(t.shared_wavefronts, "wavefront"), t.bank_conflicts,
          io::counted(t.global_bytes, "byte"), io::counted(t.global_sectors, "sector"));
      if (lines) {
        print("{}", report->text());
      } else if (report->open_choices != 0) {
        print("order: one of an estimated 2^{}; sim::explore runs those of a small problem\n",
              report->open_choices);
      }
    }
    for (std::string const& note : v.notes) print("{}\n", note);
    if (!v.output.empty()) print("written to {}\n", v.output);
    print("{}\n", !within    ? "WRONG: beyond the bound"
                  : !bounded ? "within bounds where there are any"
                             : "within bounds");
  }
  if (!within) throw reported_failure();
}

}  // namespace tegula::tool
