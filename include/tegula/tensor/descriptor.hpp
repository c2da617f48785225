#pragma once

#include <cstdint>

#include "tegula/arch/tcgen05_descriptor.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/arch/wgmma_descriptor.hpp"
#include "tegula/layout/recast.hpp"
#include "tegula/sim/mutable_values.hpp"
#include "tegula/tensor/shared.hpp"
#include "tegula/tensor/wgmma_layout.hpp"

/// Tensors of matrix descriptors: a tile in shared memory as wgmma reads it.
namespace tegula {

namespace detail {

/// A mode's offsets in pieces of 16 bytes, of which descriptors count.
template <class Tile, class M> struct DescriptorSteps {
  struct Source {
    static constexpr Layout value = make_layout(
        upcast(ModeTraits<tile_offsets<Tile, M>>::make(), 16 / sizeof(typename Tile::Element)));
  };
  using Type = mode_at<0, MapOf<Source>>;
};

/// Refuses steps that lead to no operand: into a group of eight rows, or into what the hardware
/// reads as one row of the K-major or MN-major form.
constexpr bool check_descriptor_steps(Layout const& steps, bool along_mn, int row, int bits) {
  int const mn = along_mn ? row : 8, k = along_mn ? 8 : 256 / bits;
  for (int i = 0; i < steps.count; ++i) {
    std::int64_t const unit = steps.axes[i] == 1 ? mn : steps.axes[i] == 2 ? k : 1;
    if (steps.extents[i] > 1 && steps.strides[i] % unit != 0)
      refuse("partition", "wgmma's operands begin at multiples of 8 rows, and of 32 bytes along k",
             steps, unit);
  }
  return true;
}
template <class Tile, class M> struct DescriptorStepsChecked {
  static constexpr Layout steps = ModeTraits<M>::make();
  static constexpr bool along_mn = mn_contiguous(Tile::layout);
  static constexpr int bits = 8 * sizeof(typename Tile::Element);
  static constexpr int row = (128 / bits) << Tile::layout.swizzle.bits;
  static constexpr bool value = check_descriptor_steps(steps, along_mn, row, bits);
};

}  // namespace detail

/// Who reads the operands: the bits that follow from that.
enum class DescriptorForm : std::uint8_t { wgmma, tcgen05 };

/// A tile (mn, k[, stage]) in shared memory, whose places are matrix descriptors of the operands
/// that begin there. The hardware swizzles the sums, so every step adds. Refused where the tile has
/// not a layout that wgmma reads (wgmma_descriptor).
template <class Tile, DescriptorForm Form = DescriptorForm::wgmma> class Descriptors {
 public:
  using Element = typename Tile::Element;
  static constexpr WgmmaDescriptor descriptor =
      wgmma_descriptor(Tile::layout, 8 * sizeof(Element), Form == DescriptorForm::tcgen05 ? 8 : 16);

  /// In a cluster a shared address has the CTA's rank in its upper bits, where the descriptor has
  /// the leading offset: PTX ISA, matrix-descriptor-encode.
  TEGULA_DEVICE Descriptors(SharedAddr base, [[maybe_unused]] SourceLocation where)
      : low_(low | (base & 0x3ffff) >> 4) {
#if TEGULA_HAS_MUTABLE_VALUES
    made_at_ = where;
#endif
  }

  /// The same, by a shuffle from lane 0.
  TEGULA_DEVICE Descriptors of_lane_0(SourceLocation where) const {
    Descriptors result = *this;
    result.low_ = warp::shfl(low_, 0, warp::kAllLanes, where);
    return result;
  }
  template <class M> TEGULA_DEVICE Descriptors moved(int index) const {
    static_assert(detail::DescriptorStepsChecked<Tile, M>::value);
    Descriptors result = *this;
    result.low_ += static_cast<std::uint32_t>(coordinate<0>(Steps<M>{}, index));
    return result;
  }
  template <class M, class... I> TEGULA_DEVICE std::uint64_t at(SourceLocation, I... i) const {
    std::uint32_t const moved = low_ + steps(M{}, i...);
    bool const swizzled = is_swizzled<descriptor.swizzle_bytes != 0>(made_at());
    return static_cast<std::uint64_t>(swizzled ? high : high & unswizzled) << 32 | moved;
  }
  template <class M, class... I>
  TEGULA_DEVICE std::uint64_t element(SourceLocation where, I... i) const {
    return at<M>(where, i...);
  }

 private:
  template <class M> using Steps = typename detail::DescriptorSteps<Tile, M>::Type;
  template <class... Modes, class... I>
  TEGULA_DEVICE static std::uint32_t steps(Map<Modes...>, I... i) {
    static_assert(sizeof...(Modes) == sizeof...(I), "a descriptor takes one index for each mode");
    static_assert((true && ... && detail::DescriptorStepsChecked<Tile, Modes>::value));
    return static_cast<std::uint32_t>(
        (0 + ... + coordinate<0>(Steps<Modes>{}, static_cast<int>(i))));
  }
  static constexpr std::uint32_t low = descriptor.low();
  static constexpr std::uint32_t high =
      Form == DescriptorForm::wgmma ? descriptor.high() : tcgen05_descriptor_high(descriptor);
  static constexpr std::uint32_t unswizzled =
      Form == DescriptorForm::wgmma ? 0x3fffffff : 0x1fffffff;

#if TEGULA_HAS_MUTABLE_VALUES
  TEGULA_DEVICE SourceLocation made_at() const { return made_at_; }
  SourceLocation made_at_;
#else
  TEGULA_DEVICE static SourceLocation made_at() { return {}; }
#endif
  std::uint32_t low_;  // bits 0 to 31 of the descriptor of the base
};

/// The matrix descriptor of a tile in shared memory, or of a part of one, as an instruction of
/// arch/ (wgmma, unless said otherwise) names it. Parts begin at multiples of 8 rows of a K-major
/// tile, or of the row's width of an MN-major one, and of 32 bytes along k, or of 8 there.
template <DescriptorForm Form = DescriptorForm::wgmma, class Tile, int Moved, class M>
TEGULA_DEVICE std::uint64_t matrix_descriptor(
    Tensor<Shared<Tile, Mode<>, CopyOp::universal, Moved>, M> const& operand,
    SourceLocation where = SourceLocation::current()) {
  return Descriptors<Tile, Form>(operand.space.base_address(), where).template at<Map<>>(where);
}

/// The same tensor, whose base is the same in all lanes, as the compiler then knows: it keeps
/// descriptors in uniform registers, where wgmma takes them from, and works none out again. By all
/// lanes of a warp, before a loop.
template <class Tile, DescriptorForm Form, class M>
TEGULA_DEVICE auto uniform(Tensor<Descriptors<Tile, Form>, M> const& tensor,
                           SourceLocation where = SourceLocation::current()) {
  return detail::make_tensor<M>(tensor.space.of_lane_0(where));
}

}  // namespace tegula
