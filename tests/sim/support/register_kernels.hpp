#pragma once

#include <cstdint>

#include "hopper_kernels.hpp"
#include "tegula/tensor/register_arithmetic.hpp"
#include "tegula/tensor/register_reduce.hpp"

/// What threads compute with fragments: conversions of any bits, arithmetic, reductions across
/// lanes.
namespace tegula::register_kernels {

using hopper_kernels::Kernels;
using hopper_kernels::OneWarp;
using hopper_kernels::Words;

/// A thread's part of the input, and its next place of the output.
template <int In, int Out> struct Lane {
  std::uint32_t const* in;
  std::uint32_t* out;
  TEGULA_DEVICE explicit Lane(Words const& p)
      : in(p.in + In * lane_id()), out(p.out + Out * lane_id()) {}
  template <class T, int Count> TEGULA_DEVICE auto load(int at) const {
    Fragment<T, identity_map<Count>> result;
#pragma unroll
    for (int i = 0; i < result.registers; ++i)
      result.data[i] =
          bits_as<typename decltype(result)::Register>(ld_global<std::uint32_t>(in + at + i));
    return result;
  }
  template <Registers F> TEGULA_DEVICE void store(F const& f) {
#pragma unroll
    for (int i = 0; i < F::size; i += F::per_register)
      st_global(out++, bits_as<std::uint32_t>(f.read_word(i)));
  }
};

/// Conversions of any bits: out of f32, and of f16, bf16, e4m3 and e5m2.
struct Converts : OneWarp {
  struct SharedStorage {};
  static constexpr int own_in = 4, own_out = 36;
  static constexpr int in_words = 32 * own_in, out_words = 32 * own_out;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage&) const {
    Lane<own_in, own_out> lane(p);
    auto const x = lane.load<float, 4>(0);
    lane.store(convert<half>(x)), lane.store(convert<bfloat16>(x));               // 2 + 2
    lane.store(convert<float_e4m3>(x)), lane.store(convert<float_e5m2>(x));       // 1 + 1
    lane.store(convert<std::int8_t>(x)), lane.store(convert<std::uint8_t>(x));    // 1 + 1
    lane.store(convert<std::int32_t>(x)), lane.store(convert<std::uint32_t>(x));  // 4 + 4
    lane.store(convert<float>(lane.load<half, 4>(0)));                            // 4
    lane.store(convert<float>(lane.load<bfloat16, 4>(0)));                        // 4
    lane.store(convert<float>(lane.load<float_e4m3, 4>(2)));                      // 4
    lane.store(convert<float>(lane.load<float_e5m2, 4>(3)));                      // 4
    lane.store(convert<bfloat16>(lane.load<half, 4>(2)));                         // 2
    lane.store(convert<half>(lane.load<std::int8_t, 4>(1)));                      // 2
  }
};

/// Sums, products and assignments of finite values of T, which lie around 1.
template <class T> struct Computes : OneWarp {
  struct SharedStorage {};
  static constexpr int own_in = 8, count = 8 / sizeof(T) * 2, own_out = 4;
  static constexpr int in_words = 32 * own_in, out_words = 32 * own_out;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage&) const {
    Lane<own_in, own_out> lane(p);
    using F = Fragment<T, identity_map<2, count / 2>>;
    auto const number = [&](int i) {
      return static_cast<float>(static_cast<int>(ld_global<std::uint32_t>(lane.in + i) % 129) -
                                64) /
             32;
    };
    F a, b;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      a(i) = detail::as_number<T>(number(i % 4));
      b(i) = detail::as_number<T>(number(4 + i % 4) + static_cast<float>(i));
    }
    a += b, a *= 0.75f, a -= b, a *= b;
    transform(a, b, a, Maximum{});
    transform(a, [](float x) { return x - 0.125f; });
    for_each(a, [](T& x) { x = detail::as_number<T>(2 * to_float(x)); });
    a(1, _) += 3;
    a(0) = a(1, 1);
    auto const sums = reduce<1>(a, Plus{});
    b(0) = detail::as_number<T>(sums(0)), b(1) = detail::as_number<T>(sums(1));
    a -= b;
    lane.store(a);
  }
};

/// The quad's largest value of each row, and the columns' sums.
struct ReducesLanes : OneWarp {
  struct SharedStorage {};
  struct Spec {
    static constexpr TiledMmaSpec mma{warp_mma(DType::bf16, DType::f32, 16), 16, 8};
  };
  using Mma = TiledMma<Spec::mma>;
  static constexpr int own_in = 4, own_out = 4;
  static constexpr int in_words = 32 * own_in, out_words = 32 * own_out;

  TEGULA_DEVICE void operator()(Words const& p, SharedStorage&) const {
    Lane<own_in, own_out> lane(p);
    Mma const mma{lane_id()};
    typename Mma::Accumulator c;
#pragma unroll
    for (int i = 0; i < c.size; ++i)
      c(i) = static_cast<float>(ld_global<std::uint32_t>(lane.in + i) % 1000);
    auto rows = reduce<1>(c, Maximum{});
    auto columns = convert<std::int32_t>(reduce<0>(c, Plus{}));
    reduce_lanes<1>(mma, rows, Maximum{});
    reduce_lanes<0>(mma, columns, Plus{});
    lane.store(rows), lane.store(columns);
  }
};

using AllKernels = Kernels<Converts, Computes<float>, Computes<half>, Computes<bfloat16>,
                           Computes<float_e4m3>, ReducesLanes>;

}  // namespace tegula::register_kernels
