#include "guard.hpp"

#include <stdexcept>

#include "expression.hpp"
#include "tegula/layout/refuse.hpp"
#include "tegula/sim/report.hpp"

namespace tegula::c {
namespace {

thread_local std::string last_error;

}  // namespace

tegula_status failed(tegula_status status, std::string_view sentence) noexcept {
  try {
    last_error.assign(sentence);
  } catch (std::bad_alloc const&) {
    last_error.clear();
  }
  return status;
}

tegula_status failed_by_exception() noexcept {
  try {
    throw;
  } catch (layout_error const& error) {
    return failed(TEGULA_LAYOUT_ERROR, error.what());
  } catch (tool::ExpressionError const& error) {
    return failed(TEGULA_LAYOUT_ERROR, error.what());
  } catch (std::invalid_argument const& error) {
    // argument_error, and what the simulated machine refuses
    return failed(TEGULA_ARGUMENT_ERROR, error.what());
  } catch (device_error const& error) {
    return failed(TEGULA_DEVICE_ERROR, error.what());
  } catch (sim::CheckError const& error) {
    return failed(TEGULA_FINDING, error.what());
  } catch (std::bad_alloc const&) {
    return failed(TEGULA_OUT_OF_MEMORY, "There is not enough memory for what was asked.");
  } catch (std::length_error const&) {
    return failed(TEGULA_OUT_OF_MEMORY, "What was asked is larger than any memory.");
  } catch (std::exception const& error) {
    return failed(TEGULA_INTERNAL_ERROR, error.what());
  } catch (...) {
    return failed(TEGULA_INTERNAL_ERROR, "An exception that is no std::exception was thrown.");
  }
}

char const* last_sentence() noexcept { return last_error.c_str(); }

}  // namespace tegula::c
