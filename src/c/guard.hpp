#pragma once

#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "tegula/device/error.hpp"
#include "tegula/tegula.h"

/// What every function of the C interface does: no exception leaves it, and its sentence is kept.
namespace tegula::c {

/// Keeps the sentence for tegula_last_error and returns the status.
tegula_status failed(tegula_status status, std::string_view sentence) noexcept;

/// What failed() kept last in this thread.
char const* last_sentence() noexcept;

/// The status of the exception that is being handled, its sentence kept.
tegula_status failed_by_exception() noexcept;

/// Calls f; TEGULA_OK, or the status of what it threw.
template <class F> tegula_status guarded(F&& f) noexcept {
  try {
    std::forward<F>(f)();
    return TEGULA_OK;
  } catch (...) {
    return failed_by_exception();
  }
}

/// Throws argument_error for a null pointer: `name` is the parameter.
inline void not_null(char const* function, char const* name, void const* pointer) {
  if (pointer == nullptr)
    throw argument_error(std::string(function) + ": " + name +
                         " is NULL; it must point to something.");
}

/// Throws argument_error for a negative number of things, and where there are some and no pointer
/// to them.
inline void counted(char const* function, char const* name, void const* pointer,
                    char const* name_of_count, std::int64_t count) {
  if (count < 0)
    throw argument_error(std::string(function) + ": " + name_of_count + " is " +
                         std::to_string(count) + "; it must be at least 0.");
  if (count > 0) not_null(function, name, pointer);
}

/// A copy for the caller to free by tegula_free.
inline char* as_c_text(std::string_view text) {
  char* const copy = new char[text.size() + 1];
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  return copy;
}

}  // namespace tegula::c
