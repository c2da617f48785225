#pragma once

#include <optional>
#include <string>

#include "tegula/layout/refuse.hpp"

namespace tegula {

/// The sentence of the Error that `action` throws; empty where it throws none.
template <class Error = layout_error, class Action> std::string sentence(Action const& action) {
  try {
    action();
  } catch (Error const& error) {
    return error.what();
  }
  return "";
}

/// The result of `operation`; none where it is refused.
template <class Operation>
auto attempt(Operation const& operation) -> std::optional<decltype(operation())> {
  try {
    return operation();
  } catch (layout_error const&) {
    return std::nullopt;
  }
}

}  // namespace tegula
