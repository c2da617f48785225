#include "tegula/sim/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace tegula::sim {

namespace {

// What a process is, by the bits 60 and up of its name: a thread, a warp, a warpgroup, an operation
// in flight, a place for clusters.
constexpr char kProcessLetters[] = "twgop";
constexpr int kProcessShift = 60;
constexpr int kIssuerShift = 32;
constexpr std::uint64_t kIssuerMask = (std::uint64_t{1} << (kProcessShift - kIssuerShift)) - 1;

/// Takes a number off the front of the text.
bool take_number(std::string_view& text, std::uint64_t& number) {
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool take(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

bool take_choice(std::string_view word, Choices::Choice& choice) {
  std::uint64_t step = 0;
  std::uint64_t number = 0;
  if (!take_number(word, step) || !take(word, ':') || word.empty()) return false;
  std::size_t const kind = std::string_view(kProcessLetters).find(word.front());
  if (kind == std::string_view::npos) return false;
  word.remove_prefix(1);
  if (!take_number(word, number) || number > kIssuerMask) return false;
  if (kind == 3) {
    std::uint64_t own = 0;
    if (!take(word, '.') || !take_number(word, own) || own >> kIssuerShift != 0) return false;
    number = number << kIssuerShift | own;
  }
  choice = {static_cast<std::int64_t>(step), kind << kProcessShift | number};
  return word.empty();
}

}  // namespace

std::string Choices::text() const {
  std::string text = accesses ? "access" : "sync";
  if (refusals) text += " refusals";
  for (auto const& [step, process] : choices) {
    std::uint64_t const kind = process >> kProcessShift;
    std::uint64_t const number = process & ((std::uint64_t{1} << kProcessShift) - 1);
    text += fmt::format(" {}:{}", step, kProcessLetters[kind]);
    text += kind == 3 ? fmt::format("{}.{}", number >> kIssuerShift, number & 0xffffffffu)
                      : fmt::format("{}", number);
  }
  return text;
}

std::string Schedule::text() const {
  if (choices) return "choices " + choices->text();
  return fmt::format("completion {}, interleaving {}, seed {}", to_string(completion),
                     to_string(interleaving), seed);
}

Choices Choices::parse(std::string_view text) {
  if (text.empty())
    throw std::invalid_argument("choices begin with 'sync' or 'access', and these are empty");
  Choices choices;
  for (bool first = true; !text.empty(); first = false) {
    std::size_t const end = std::min(text.find(' '), text.size());
    std::string_view const word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (first) {
      if (word != "sync" && word != "access")
        throw std::invalid_argument(
            fmt::format("choices begin with 'sync' or 'access', not with '{}'", word));
      choices.accesses = word == "access";
    } else if (word == "refusals") {
      choices.refusals = true;
    } else if (!word.empty() && !take_choice(word, choices.choices.emplace_back())) {
      throw std::invalid_argument(fmt::format(
          "'{}' is no choice: it must be STEP:PROCESS, the process t, w, g or p and a number, or oISSUER.NUMBER",
          word));
    }
  }
  return choices;
}

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
