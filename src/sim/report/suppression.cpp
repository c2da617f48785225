#include "tegula/sim/suppression.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "tegula/io/text.hpp"

namespace tegula::sim {

namespace {

constexpr int kKinds = static_cast<int>(FindingKind::exception) + 1;

std::optional<FindingKind> kind_of(std::string_view name) {
  for (int i = 0; i < kKinds; ++i) {
    FindingKind const kind = static_cast<FindingKind>(i);
    if (to_string(kind) == name) return kind;
  }
  return std::nullopt;
}

std::string kind_names() {
  std::string names;
  for (int i = 0; i < kKinds; ++i)
    names += (i == 0 ? "" : ", ") + std::string(to_string(static_cast<FindingKind>(i)));
  return names;
}

std::string shown(nlohmann::json const& value) { return io::printable(value.dump()); }

std::string text_of(nlohmann::json const& entry, std::size_t number, char const* key) {
  if (!entry.contains(key)) return {};
  if (!entry[key].is_string())
    throw std::invalid_argument(fmt::format("suppression {}: \"{}\" is {}; it must be a string.",
                                            number, key, shown(entry[key])));
  return entry[key].get<std::string>();
}

Suppression parse(nlohmann::json const& entry, std::size_t number) {
  if (!entry.is_object())
    throw std::invalid_argument(
        fmt::format("suppression {} is {}; it must be an object.", number, shown(entry)));
  for (auto const& [key, value] : entry.items()) {
    if (key != "kind" && key != "file" && key != "line" && key != "buffer" && key != "reason")
      throw std::invalid_argument(fmt::format(
          "suppression {} has \"{}\"; it has kind, file, line, buffer and reason, and no more.",
          number, io::printable(key)));
  }
  std::string const kind = text_of(entry, number, "kind");
  std::optional<FindingKind> const known = kind_of(kind);
  if (!known)
    throw std::invalid_argument(
        fmt::format("suppression {}: the kind is '{}'; it must be one of {}.", number,
                    io::printable(kind), kind_names()));
  Suppression suppression{*known, text_of(entry, number, "file"), 0,
                          text_of(entry, number, "buffer"), text_of(entry, number, "reason")};
  if (entry.contains("line")) {
    if (!entry["line"].is_number_integer() || entry["line"].get<std::int64_t>() < 1 ||
        entry["line"].get<std::int64_t>() > 1 << 30)
      throw std::invalid_argument(
          fmt::format("suppression {}: the line is {}; it must be a whole number from 1 on.",
                      number, shown(entry["line"])));
    suppression.line = entry["line"].get<int>();
  }
  return suppression;
}

}  // namespace

bool covers(Suppression const& suppression, Finding const& finding) {
  if (finding.kind != suppression.kind || finding.ended_cluster) return false;
  if (!suppression.buffer.empty() && finding.buffer != suppression.buffer) return false;
  if (suppression.line != 0 && finding.where.line != suppression.line) return false;
  std::string_view const file = finding.where.file;
  if (!file.ends_with(suppression.file)) return false;
  std::size_t const before = file.size() - suppression.file.size();
  return suppression.file.empty() || before == 0 || file[before - 1] == '/';
}

void check(Suppression const& suppression) {
  std::string const name = fmt::format("the suppression of {}", to_string(suppression.kind));
  if (suppression.reason.empty())
    throw std::invalid_argument(name + " has no reason; it must say why the finding is accepted.");
  if (suppression.file.empty() && suppression.buffer.empty())
    throw std::invalid_argument(
        name + " names neither file nor buffer; it must name at least one of them.");
  if (suppression.line != 0 && suppression.file.empty())
    throw std::invalid_argument(
        fmt::format("{} is for line {} of no file; a line needs a file.", name, suppression.line));
}

std::vector<Suppression> parse_suppressions(std::string_view json) {
  // Depth first: a parsed value is written and copied by recursion.
  constexpr int kDeepest = 64;
  if (io::json_depth(json) > kDeepest)
    throw std::invalid_argument(
        fmt::format("suppressions nest arrays and objects more than {} deep.", kDeepest));
  nlohmann::json const parsed = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_array())
    throw std::invalid_argument(
        "suppressions must be a JSON array of objects with kind, file, line, buffer and reason.");
  std::vector<Suppression> suppressions;
  for (std::size_t i = 0; i < parsed.size(); ++i) {
    suppressions.push_back(parse(parsed[i], i + 1));
    check(suppressions.back());
  }
  return suppressions;
}

}  // namespace tegula::sim
