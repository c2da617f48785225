#include "tegula/device/reference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference_sums.hpp"
#include "tegula/io/text.hpp"
#include "tegula/numeric/float8.hpp"

namespace tegula::reference {
namespace {
/// Element `index` of elements of 6 bits that lie packed, bit after bit.
std::uint8_t six_bits(void const* data, std::int64_t index) {
  std::int64_t const bit = 6 * index, shift = bit % 8;
  unsigned word = load<std::uint8_t>(data, bit / 8);
  if (shift > 2) word |= static_cast<unsigned>(load<std::uint8_t>(data, bit / 8 + 1)) << 8;
  return static_cast<std::uint8_t>(word >> shift & 0x3f);
}
}  // namespace

double element(void const* data, DType type, std::int64_t index) {
  switch (type) {
    case DType::f16:
      return to_float(load<half>(data, index));
    case DType::bf16:
      return to_float(load<bfloat16>(data, index));
    case DType::f32:
      return load<float>(data, index);
    case DType::tf32:
      return to_float(load<tfloat32>(data, index));
    case DType::e4m3:
      return to_float(load<float_e4m3>(data, index));
    case DType::e5m2:
      return to_float(load<float_e5m2>(data, index));
    case DType::e2m1:
      return to_float(load<float_e2m1x2>(data, index / 2)[static_cast<int>(index % 2)]);
    case DType::e2m3:
      return to_float(float_e2m3{six_bits(data, index)});
    case DType::e3m2:
      return to_float(float_e3m2{six_bits(data, index)});
    case DType::ue8m0:
      return to_float(load<float_ue8m0>(data, index));
    case DType::ue4m3:
      return to_float(load<float_ue4m3>(data, index));
    case DType::f64:
      return load<double>(data, index);
    default:
      throw argument_error(
          fmt::format("reference::element: the type is {}; floating-point numbers can be read.",
                      to_string(type)));
  }
}

double largest_finite(DType type) {
  switch (type) {
    case DType::f16:
      return 65504;
    case DType::bf16:
      return 0x1.fep127;
    case DType::f32:
      return std::numeric_limits<float>::max();
    default:
      throw argument_error(
          fmt::format("reference::largest_finite: the type is {}; it must be f16, bf16 or f32.",
                      to_string(type)));
  }
}

void check_rows(char const* operation, std::vector<std::int64_t> const& rows, std::int64_t total) {
  for (std::int64_t const row : rows)
    if (row < 0 || row >= total)
      throw argument_error(fmt::format("reference::{}: a row is {}; it must be from 0 to {}.",
                                       operation, row, total - 1));
}

std::vector<std::int64_t> some_rows(std::int64_t total, std::int64_t most) {
  if (total < 0)
    throw argument_error(
        fmt::format("reference::some_rows: total is {}; it must be at least 0.", total));
  std::int64_t const count = std::min(total, std::max<std::int64_t>(most, 1));
  std::vector<std::int64_t> rows(static_cast<std::size_t>(count));
  double const step =
      count > 1 ? static_cast<double>(total - 1) / static_cast<double>(count - 1) : 0;
  for (std::int64_t i = 0; i < count; ++i)
    rows[static_cast<std::size_t>(i)] =
        count == total ? i : static_cast<std::int64_t>(std::floor(static_cast<double>(i) * step));
  return rows;
}

Comparison compare(std::vector<double> const& results, Values const& reference, double largest) {
  if (results.size() != reference.value.size() || results.size() != reference.bound.size())
    throw argument_error(fmt::format(
        "reference::compare: {} cannot be compared with {}; there must be as many.",
        io::counted(results.size(), "result"), io::counted(reference.value.size(), "value")));
  Comparison c;
  c.elements = static_cast<std::int64_t>(results.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    double const result = results[i], value = reference.value[i], bound = reference.bound[i];
    c.unbounded += std::isfinite(value) && std::isinf(bound);
    c.not_finite += std::isfinite(value) && !std::isfinite(result);
    double error = 0, ratio = 0;
    if (std::isnan(value) || std::isnan(result)) {
      bool const right =
          std::isnan(value) ? std::isnan(result) : std::isfinite(value) && std::isinf(bound);
      ratio = right ? 0 : std::numeric_limits<double>::infinity();
    } else if (result != value) {
      bool const overflowed =
          std::isinf(result) && (result > 0 ? value + bound >= largest : value - bound <= -largest);
      error = overflowed ? 0 : std::abs(result - value);
      ratio = error == 0 ? 0 : bound > 0 ? error / bound : std::numeric_limits<double>::infinity();
      if (std::isnan(ratio)) ratio = std::numeric_limits<double>::infinity();  // inf / inf
    }
    if (std::isfinite(error)) c.max_error = std::max(c.max_error, error);
    if (c.worst < 0 || ratio > c.max_ratio)
      c.max_ratio = ratio, c.worst = static_cast<std::int64_t>(i), c.worst_result = result;
  }
  return c;
}

void Comparison::add(Comparison const& other, std::int64_t offset) {
  elements += other.elements;
  unbounded += other.unbounded;
  not_finite += other.not_finite;
  max_error = std::max(max_error, other.max_error);
  if (other.worst >= 0 && (worst < 0 || other.max_ratio > max_ratio)) {
    max_ratio = other.max_ratio;
    worst = other.worst + offset;
    worst_result = other.worst_result;
  }
}

}  // namespace tegula::reference
