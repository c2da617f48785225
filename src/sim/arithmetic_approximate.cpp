#include <cmath>
#include <cstdint>
#include <tegula/sim/arithmetic.hpp>

namespace tegula::sim {
namespace {

constexpr float kNan = __builtin_bit_cast(float, 0x7fffffffu);

float flushed(float x) { return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }

}  // namespace

float ex2_approx_ftz(float x) {
  if (std::isnan(x)) return kNan;
  return flushed(static_cast<float>(std::exp2(static_cast<double>(flushed(x)))));
}

float lg2_approx_ftz(float x) {
  x = flushed(x);
  if (std::isnan(x) || x < 0.0f) return kNan;
  return static_cast<float>(std::log2(static_cast<double>(x)));
}

float rcp_approx_ftz(float x) {
  if (std::isnan(x)) return kNan;
  return flushed(1.0f / flushed(x));
}

float rsqrt_approx_ftz(float x) {
  x = flushed(x);
  if (std::isnan(x) || x < 0.0f) return kNan;
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x)));
}

float tanh_approx(float x) {
  if (std::isnan(x)) return kNan;
  return static_cast<float>(std::tanh(static_cast<double>(x)));
}

}  // namespace tegula::sim
