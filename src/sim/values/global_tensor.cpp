#include "values/global_tensor.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>

namespace tegula::sim {

namespace {

/// All ways in which an offset is a sum of digits times strides, as far as a second one: the digits
/// of the first.
class Digits {
 public:
  Digits(Layout const& layout, std::int64_t offset) : layout_(layout), order_(layout.leaves()) {
    // From the greatest stride down, what is left bounds the digits most.
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(), [&](int a, int b) {
      return std::abs(layout.strides[a]) > std::abs(layout.strides[b]);
    });
    rest_.resize(order_.size() + 1);
    for (std::size_t i = order_.size(); i-- > 0;) {
      std::int64_t const last = (layout.extents[order_[i]] - 1) * layout.strides[order_[i]];
      rest_[i] = {rest_[i + 1].least + std::min<std::int64_t>(last, 0),
                  rest_[i + 1].greatest + std::max<std::int64_t>(last, 0)};
    }
    search(0, offset);
  }
  int ways() const { return ways_; }
  std::int64_t operator[](int leaf) const { return first_[static_cast<std::size_t>(leaf)]; }

 private:
  void search(std::size_t i, std::int64_t offset) {
    if (ways_ == 2 || offset < rest_[i].least || offset > rest_[i].greatest) return;
    if (i == order_.size()) {
      if (++ways_ == 1) first_ = digits_;
      return;
    }
    auto const leaf = static_cast<std::size_t>(order_[i]);
    std::int64_t const stride = layout_.strides[leaf];
    std::int64_t first = 0, end = layout_.extents[leaf];
    if (stride != 0) {  // those that leave what the other leaves can be
      std::int64_t const a = (offset - rest_[i + 1].greatest) / stride;
      std::int64_t const b = (offset - rest_[i + 1].least) / stride;
      first = std::max(first, std::min(a, b) - 1);  // the quotients are rounded
      end = std::min(end, std::max(a, b) + 2);
    }
    for (std::int64_t digit = first; digit < end && ways_ < 2; ++digit) {
      digits_[leaf] = digit;
      search(i + 1, offset - digit * stride);
    }
  }

  Layout const& layout_;
  std::vector<int> order_;
  std::vector<OffsetRange> rest_;  ///< what the leaves from the i-th in that order on can add up to
  std::array<std::int64_t, kMaxLeaves> digits_{}, first_{};
  int ways_ = 0;
};

/// Digits of leaves as one index for each mode.
template <class DigitOf>
std::vector<std::int64_t> by_mode(Layout const& layout, DigitOf&& digit_of) {
  std::vector<std::int64_t> coordinate;
  int leaf = 0;
  for (int mode = 0; mode < layout.rank(); ++mode) {
    std::int64_t index = 0, scale = 1;
    for (int const end = leaf + layout[mode].leaves(); leaf < end; ++leaf) {
      index += digit_of(leaf) * scale;
      scale *= layout.extents[leaf];
    }
    coordinate.push_back(index);
  }
  return coordinate;
}

}  // namespace

OffsetRange offsets_of(Layout const& layout) {
  OffsetRange range;
  for (int leaf = 0; leaf < layout.leaves(); ++leaf) {
    std::int64_t const last = (layout.extents[leaf] - 1) * layout.strides[leaf];
    range.least += std::min<std::int64_t>(last, 0);
    range.greatest += std::max<std::int64_t>(last, 0);
  }
  return range;
}

ElementAt element_at(GlobalTensor const& tensor, void const* byte) {
  std::int64_t const distance =
      static_cast<unsigned char const*>(byte) - static_cast<unsigned char const*>(tensor.address);
  std::int64_t const bytes = element_bytes(tensor);
  std::int64_t const offset = distance / bytes - (distance % bytes < 0 ? 1 : 0);
  OffsetRange const range = offsets_of(tensor.layout);
  if (offset < range.least || offset > range.greatest) return {};
  Digits const digits(tensor.layout, offset);
  if (digits.ways() != 1) return {{}, digits.ways() == 0};
  return {by_mode(tensor.layout, [&](int leaf) { return digits[leaf]; }), false};
}

std::vector<std::int64_t> coordinate_of(Layout const& layout, std::int64_t index) {
  return by_mode(layout, [&](int leaf) {
    std::int64_t const digit = index % layout.extents[leaf];
    index /= layout.extents[leaf];
    return digit;
  });
}

std::string coordinate_text(GlobalTensor const& tensor,
                            std::vector<std::int64_t> const& coordinate) {
  std::string text;
  for (std::size_t mode = 0; mode < coordinate.size(); ++mode)
    text += (mode == 0 ? "" : ", ") + tensor.modes[mode] + " " + std::to_string(coordinate[mode]);
  return text;
}

}  // namespace tegula::sim
