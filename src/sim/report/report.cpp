#include "tegula/sim/report.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "values/place.hpp"

namespace tegula::sim {

std::string_view to_string(FindingKind kind) {
  switch (kind) {
    case FindingKind::out_of_bounds:
      return "out_of_bounds";
    case FindingKind::misaligned:
      return "misaligned";
    case FindingKind::uninitialized_read:
      return "uninitialized_read";
    case FindingKind::async_read_early:
      return "async_read_early";
    case FindingKind::async_overwrite:
      return "async_overwrite";
    case FindingKind::data_race:
      return "data_race";
    case FindingKind::proxy_race:
      return "proxy_race";
    case FindingKind::register_race:
      return "register_race";
    case FindingKind::too_few_registers:
      return "too_few_registers";
    case FindingKind::wrong_layout:
      return "wrong_layout";
    case FindingKind::unread_copy:
      return "unread_copy";
    case FindingKind::divergence:
      return "divergence";
    case FindingKind::invalid_operand:
      return "invalid_operand";
    case FindingKind::mbarrier_misuse:
      return "mbarrier_misuse";
    case FindingKind::exited_cta:
      return "exited_cta";
    case FindingKind::tensor_memory_misuse:
      return "tensor_memory_misuse";
    case FindingKind::deadlock:
      return "deadlock";
    case FindingKind::bank_conflicts:
      return "bank_conflicts";
    case FindingKind::uncoalesced:
      return "uncoalesced";
    case FindingKind::unread_input:
      return "unread_input";
    case FindingKind::unwritten_output:
      return "unwritten_output";
    case FindingKind::trap:
      return "trap";
    case FindingKind::exception:
      return "exception";
  }
  return "";
}

std::string to_string(Finding const& finding, std::string_view kernel) {
  std::string place = fmt::format("kernel {}", kernel);
  if (finding.cta.x >= 0) {
    place = fmt::format("{}: {}, CTA ({}, {}, {})", place_text(finding.where), place, finding.cta.x,
                        finding.cta.y, finding.cta.z);
  }
  if (finding.warp >= 0) place += fmt::format(", warp {}", finding.warp);
  if (finding.lane >= 0) place += fmt::format(", lane {}", finding.lane);
  std::string const times =
      finding.count > 1 ? fmt::format(" ({} times in all)", finding.count) : "";
  std::string const order = finding.order.empty() ? "" : ": " + finding.order;
  return fmt::format("{}: {}: {}{}{}", place, to_string(finding.kind), finding.message, order,
                     times);
}

void LineCounters::add(LineCounters const& other) {
  instructions += other.instructions;
  fused_multiply_adds += other.fused_multiply_adds;
  shared_bytes += other.shared_bytes;
  shared_wavefronts += other.shared_wavefronts;
  bank_conflicts += other.bank_conflicts;
  global_bytes += other.global_bytes;
  global_sectors += other.global_sectors;
}

LineCounters Report::instruction(std::string_view name) const {
  LineCounters sum;
  sum.instruction = name;
  for (LineCounters const& line : lines) {
    if (line.instruction == name) sum.add(line);
  }
  return sum;
}

namespace {

std::string row(std::string_view place, LineCounters const& c) {
  return fmt::format("{:<36} {:<22} {:>12} {:>15} {:>12} {:>10} {:>13} {:>11}\n", place,
                     c.instruction, c.instructions, c.fused_multiply_adds, c.shared_wavefronts,
                     c.bank_conflicts, c.global_bytes, c.global_sectors);
}

nlohmann::json counters_json(LineCounters const& c) {
  return {{"instructions", c.instructions},     {"fused_multiply_adds", c.fused_multiply_adds},
          {"shared_bytes", c.shared_bytes},     {"shared_wavefronts", c.shared_wavefronts},
          {"bank_conflicts", c.bank_conflicts}, {"global_bytes", c.global_bytes},
          {"global_sectors", c.global_sectors}};
}

nlohmann::json cta_json(Dim3 const& cta) { return {cta.x, cta.y, cta.z}; }

/// null where there is none
nlohmann::json number_json(int number) {
  return number < 0 ? nlohmann::json(nullptr) : nlohmann::json(number);
}
nlohmann::json text_json(std::string const& text) {
  return text.empty() ? nlohmann::json(nullptr) : nlohmann::json(text);
}

nlohmann::json where_json(SourceLocation const& where) {
  if (where.line == 0) return nullptr;
  return {{"file", where.file}, {"line", where.line}};
}

nlohmann::json other_json(Finding const& f) {
  if (f.other.line == 0 && !f.other_cta) return nullptr;
  return {{"where", where_json(f.other)},
          {"cta", f.other_cta ? cta_json(*f.other_cta) : nlohmann::json(nullptr)},
          {"warp", number_json(f.other_warp)},
          {"lane", number_json(f.other_lane)}};
}

nlohmann::json finding_json(Finding const& f) {
  return {{"kind", to_string(f.kind)},
          {"message", f.message},
          {"order", text_json(f.order)},
          {"where", where_json(f.where)},
          {"cta", f.cta.x < 0 ? nlohmann::json(nullptr) : cta_json(f.cta)},
          {"warp", number_json(f.warp)},
          {"lane", number_json(f.lane)},
          {"other", other_json(f)},
          {"buffer", text_json(f.buffer)},
          {"stage", number_json(f.stage)},
          {"coordinate", text_json(f.coordinate)},
          {"count", f.count},
          {"ended_cluster", f.ended_cluster}};
}

std::string orders_text(std::int64_t choices) {
  return choices <= 20 ? std::to_string(std::int64_t{1} << choices) : fmt::format("2^{}", choices);
}

}  // namespace

std::string Report::text(Counters counters) const {
  std::string text =
      fmt::format("{}: {} x {} x {} CTAs of {} threads: {}\n", kernel, grid.x, grid.y, grid.z,
                  threads, findings.empty() ? "clean" : fmt::format("{} found", findings.size()));
  for (Finding const& finding : findings) text += to_string(finding, kernel) + "\n";
  for (Silenced const& known : silenced)
    text += fmt::format("accepted ({}): {}\n", known.reason, to_string(known.finding, kernel));
  if (!findings.empty()) text += fmt::format("schedule: {}\n", schedule.text());
  if (open_choices != 0 && !schedule.choices)
    text += fmt::format(
        "order: one of an estimated {}; sim::explore runs them, as many as are allowed\n",
        orders_text(open_choices));
  if (lines.empty() || counters == Counters::left_out) return text;
  text += fmt::format("{:<36} {:<22} {:>12} {:>15} {:>12} {:>10} {:>13} {:>11}\n", "line",
                      "instruction", "executions", "multiply-adds", "wavefronts", "conflicts",
                      "global bytes", "sectors");
  for (LineCounters const& line : lines) text += row(place_text(line.where), line);
  return text + row("total", total);
}

std::string Report::json(Counters counters) const {
  nlohmann::json json = {{"kernel", kernel}, {"grid", cta_json(grid)}, {"threads", threads}};
  json["schedule"] = {{"completion", to_string(schedule.completion)},
                      {"interleaving", to_string(schedule.interleaving)},
                      {"seed", schedule.seed}};
  if (schedule.choices) json["schedule"]["choices"] = schedule.choices->text();
  json["open_choices"] = open_choices;
  json["findings"] = nlohmann::json::array();
  for (Finding const& finding : findings) json["findings"].push_back(finding_json(finding));
  json["silenced"] = nlohmann::json::array();
  for (Silenced const& known : silenced) {
    json["silenced"].push_back(finding_json(known.finding));
    json["silenced"].back()["reason"] = known.reason;
  }
  if (counters == Counters::left_out) return json.dump(2);
  json["total"] = counters_json(total);
  json["lines"] = nlohmann::json::array();
  for (LineCounters const& line : lines) {
    nlohmann::json entry = counters_json(line);
    entry["where"] = where_json(line.where);
    entry["instruction"] = line.instruction;
    json["lines"].push_back(std::move(entry));
  }
  return json.dump(2);
}

namespace {

std::string list(Report const& report) {
  std::string text;
  for (Finding const& finding : report.findings)
    text += (text.empty() ? "" : "\n") + to_string(finding, report.kernel);
  return text;
}

}  // namespace

CheckError::CheckError(Report report)
    : std::runtime_error(list(report)), report_(std::move(report)) {}

}  // namespace tegula::sim
