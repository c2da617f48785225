#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tegula/arch/tensor_map_description.hpp"

/// Boxes of tensors to move by TMA, and what must come of it, computed element by element with
/// nothing of the library's but the description. For the simulated machine and, in tests/device,
/// for a GPU beside it.
namespace tegula::tma_test {

/// Bytes of shared memory that the kernels dump: boxes, with rows as wide as their swizzle, fit.
inline constexpr int kDumpBytes = 32 * 1024;
/// What the dump holds where nothing was loaded.
inline constexpr unsigned char kUntouched = 0xa5;

struct Case {
  std::string name;
  TensorMapDescription map;  ///< without the address
  std::array<int, 5> coordinate{};
  int shared_offset = 0;                  ///< of the box in the dump; a multiple of 128
  std::array<std::uint16_t, 3> offset{};  ///< of an im2col load

  std::size_t element_bytes() const { return static_cast<std::size_t>(bits(map.dtype) / 8); }
  /// Whether a store of the box is legal.
  bool can_store() const {
    return std::none_of(coordinate.begin(), coordinate.begin() + map.rank,
                        [](int x) { return x < 0; });
  }
  /// From the tensor's first byte to the end of its last element.
  std::size_t tensor_bytes() const {
    std::int64_t last = (map.extents[0] - 1) * static_cast<std::int64_t>(element_bytes());
    for (std::size_t axis = 1; axis < static_cast<std::size_t>(map.rank); ++axis)
      last += (map.extents[axis] - 1) * map.strides[axis - 1];
    return static_cast<std::size_t>(last) + element_bytes();
  }
};

/// One element of a box: where it lies in the tensor (in bytes; -1: outside), where a store puts it
/// (which clips axis 0 at a multiple of 16 bytes; -1: nowhere) and where it lies in the dump.
struct Element {
  std::int64_t global;
  std::int64_t stored;
  int shared;
};

/// Where something of a box lies in the dump whose first byte would be at `linear` without a
/// swizzle of `span` bytes.
inline int permuted(int linear, int span) {
  int const line = linear / 128, piece = linear / 16 % 8, within = linear % 16;
  int const place = span == 0 ? piece : piece ^ (line % (span / 16));
  return 128 * line + 16 * place + within;
}

/// The elements of an im2col case: pixel i of the box is that of the i-th result of a convolution
/// after the one at the coordinate, which lies in the bounding box and on its steps.
inline std::vector<Element> elements_of_image(Case const& c) {
  int const bytes = static_cast<int>(c.element_bytes());
  constexpr int kSpans[] = {0, 32, 64, 128};
  int const span = kSpans[static_cast<int>(c.map.swizzle)];
  int const pitch = std::max(c.map.box[0] * bytes, span);
  auto const axes = static_cast<std::size_t>(c.map.rank) - 2;
  std::array<std::int64_t, 3> results{1, 1, 1};
  std::int64_t first = 0, scale = 1;
  for (std::size_t axis = 0; axis < axes; ++axis) {
    int const step = c.map.element_strides[axis + 1];
    results[axis] =
        (c.map.extents[axis + 1] + c.map.upper_corner[axis] - c.map.lower_corner[axis] + step - 1) /
        step;
    first += (c.coordinate[axis + 1] - c.map.lower_corner[axis]) / step * scale;
    scale *= results[axis];
  }
  first += c.coordinate[axes + 1] * scale;
  std::vector<Element> elements;
  for (int pixel = 0; pixel < c.map.box[1]; ++pixel) {
    std::int64_t rest = first + pixel, row = 0;
    bool inside = true;
    for (std::size_t axis = 0; axis < axes; ++axis) {
      std::int64_t const at = rest % results[axis] * c.map.element_strides[axis + 1] +
                              c.map.lower_corner[axis] + c.offset[axis];
      rest /= results[axis];
      inside = inside && at >= 0 && at < c.map.extents[axis + 1];
      row += at * c.map.strides[axis];
    }
    inside = inside && rest < c.map.extents[axes + 1];
    row += rest * c.map.strides[axes];
    for (int channel = 0; channel < c.map.box[0]; ++channel) {
      std::int64_t const at = c.coordinate[0] + channel;
      bool const held = inside && at >= 0 && at < c.map.extents[0];
      elements.push_back({held ? row + at * bytes : -1, -1,
                          permuted(c.shared_offset + pixel * pitch + channel * bytes, span)});
    }
  }
  return elements;
}

/// The elements of a case's box. A 16-byte piece of shared memory has a number within its
/// 128-byte line; under a swizzle of 2^b pieces that number's low b bits are XORed with those of
/// the line's number.
inline std::vector<Element> elements_of(Case const& c) {
  if (c.map.mode == TmaMode::im2col) return elements_of_image(c);
  std::array<int, 5> held{1, 1, 1, 1, 1};
  for (int axis = 0; axis < c.map.rank; ++axis) {
    auto const a = static_cast<std::size_t>(axis);
    int const step = axis == 0 ? 1 : c.map.element_strides[a];
    held[a] = c.map.box[a] / step + (c.map.box[a] % step != 0);
  }
  int const bytes = static_cast<int>(c.element_bytes());
  constexpr int kSpans[] = {0, 32, 64, 128};
  int const span = kSpans[static_cast<int>(c.map.swizzle)];
  int const pitch = held[0] * bytes < span ? span : held[0] * bytes;
  std::vector<Element> elements;
  int row = 0;
  for (int e = 0; e < held[4]; ++e) {
    for (int d = 0; d < held[3]; ++d) {
      for (int f = 0; f < held[2]; ++f) {
        for (int g = 0; g < held[1]; ++g, ++row) {
          for (int x = 0; x < held[0]; ++x) {
            int const index[5] = {x, g, f, d, e};
            Element element{0, 0, 0};
            for (std::size_t axis = 0; axis < static_cast<std::size_t>(c.map.rank); ++axis) {
              std::int64_t const at =
                  c.coordinate[axis] +
                  std::int64_t{index[axis]} * (axis == 0 ? 1 : c.map.element_strides[axis]);
              std::int64_t const distance = at * (axis == 0 ? bytes : c.map.strides[axis - 1]);
              std::int64_t const stored_extent =
                  axis == 0 ? (c.map.extents[0] * bytes + 15) / 16 * 16 / bytes
                            : c.map.extents[axis];
              if (at < 0 || at >= c.map.extents[axis]) element.global = -1;
              if (at < 0 || at >= stored_extent) element.stored = -1;
              if (element.global >= 0) element.global += distance;
              if (element.stored >= 0) element.stored += distance;
            }
            int const linear = c.shared_offset + row * pitch + x * bytes;
            element.shared = permuted(linear, span);
            elements.push_back(element);
          }
        }
      }
    }
  }
  return elements;
}

/// What the hardware fills with, in as many bits as the type has.
inline std::uint64_t fill_bits(TensorMapDescription const& map) {
  return map.fill == TmaFill::zeros ? 0 : 0x7ff77ff77ff77ff7;
}

/// The dump after a load.
inline std::vector<unsigned char> expected_load(Case const& c,
                                                std::vector<unsigned char> const& tensor) {
  std::vector<unsigned char> dump(kDumpBytes, kUntouched);
  std::uint64_t const fill = fill_bits(c.map);
  for (Element const& element : elements_of(c)) {
    void const* const from =
        element.global < 0 ? static_cast<void const*>(&fill) : tensor.data() + element.global;
    std::memcpy(dump.data() + element.shared, from, c.element_bytes());
  }
  return dump;
}

/// The tensor, and what lies behind it, after a store of what the dump holds.
inline std::vector<unsigned char> expected_store(Case const& c, std::vector<unsigned char> tensor,
                                                 std::vector<unsigned char> const& dump) {
  for (Element const& element : elements_of(c)) {
    if (element.stored >= 0)
      std::memcpy(tensor.data() + element.stored, dump.data() + element.shared, c.element_bytes());
  }
  return tensor;
}

/// Bytes that look random, the same every time.
inline std::vector<unsigned char> noise(std::size_t count, std::uint32_t seed) {
  std::vector<unsigned char> bytes(count);
  for (unsigned char& byte : bytes) {
    seed = seed * 1664525u + 1013904223u;  // Numerical Recipes' generator
    byte = static_cast<unsigned char>(seed >> 24);
  }
  return bytes;
}

/// The greatest coordinate of axis 0 up to `wanted` at which a box may begin: a multiple
/// of 16 bytes.
inline int aligned(TensorMapDescription const& map, std::int64_t wanted) {
  int const step = 128 / bits(map.dtype);
  return static_cast<int>(wanted - (wanted % step + step) % step);
}

/// A tensor of the given rank whose rows are not packed, a box in its middle, and coordinates
/// inside of it.
inline Case basic_case(int rank, DType dtype, TmaSwizzle swizzle) {
  Case c;
  int const element = bits(dtype) / 8;
  int const row = swizzle == TmaSwizzle::none ? 64 : span_bytes(swizzle);
  c.name =
      "rank " + std::to_string(rank) + " " + to_string(dtype) + " swizzle " + to_string(swizzle);
  c.map.dtype = dtype;
  c.map.rank = rank;
  c.map.swizzle = swizzle;
  c.map.extents = {3 * row / element + 5, 24, 5, 4, 3};
  c.map.box = {row / element, 11, 3, 2, 2};
  std::int64_t stride = 0;
  for (std::size_t axis = 0; axis < 5; ++axis) {
    std::int64_t const before = axis == 0 ? element : stride;
    if (axis < 4) {
      stride = (before * c.map.extents[axis] + 15) / 16 * 16 + 16 * static_cast<std::int64_t>(axis);
      c.map.strides[axis] = stride;
    }
    if (static_cast<int>(axis) >= rank) c.map.extents[axis] = c.map.box[axis] = 0;
  }
  for (std::size_t axis = static_cast<std::size_t>(rank) - 1; axis < 4; ++axis)
    c.map.strides[axis] = 0;
  int const inside[] = {16 / element, 7, 1, 2, 1};
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(rank); ++axis)
    c.coordinate[axis] = inside[axis];
  return c;
}

/// Every rank, swizzle and element width; boxes across every side of the tensor and wholly outside;
/// fills; element strides; places in shared memory within a swizzle's period; rows narrower than
/// the swizzle.
inline std::vector<Case> cases() {
  std::vector<Case> all;
  auto const add = [&](Case c, std::string const& what) {
    c.name += what;
    all.push_back(std::move(c));
  };
  constexpr TmaSwizzle kSwizzles[] = {TmaSwizzle::none, TmaSwizzle::b32, TmaSwizzle::b64,
                                      TmaSwizzle::b128};
  for (TmaSwizzle const swizzle : kSwizzles) {
    for (int rank = 1; rank <= 5; ++rank) {
      for (DType const dtype : {DType::u8, DType::bf16, DType::f32, DType::f64}) {
        Case const inside = basic_case(rank, dtype, swizzle);
        add(inside, "");
        for (std::size_t axis = 0; axis < static_cast<std::size_t>(rank); ++axis) {
          Case across = inside;
          across.coordinate[axis] = axis == 0 ? aligned(across.map, -3) : -1;
          add(across, " before axis " + std::to_string(axis));
          int const last = static_cast<int>(across.map.extents[axis]) - 1;
          across.coordinate[axis] = axis == 0 ? aligned(across.map, last) : last;
          if (dtype != DType::u8) across.map.fill = TmaFill::nans;
          add(across, " beyond axis " + std::to_string(axis));
        }
      }
    }
    for (DType const dtype :
         {DType::f16, DType::tf32, DType::s32, DType::u64, DType::e4m3, DType::s16}) {
      Case corner = basic_case(3, dtype, swizzle);
      corner.coordinate = {aligned(corner.map, corner.map.extents[0] - 9), -2, 3};
      if (dtype == DType::f16 || dtype == DType::tf32) corner.map.fill = TmaFill::nans;
      add(corner, " at a corner");
    }
    Case outside = basic_case(2, DType::bf16, swizzle);
    outside.coordinate = {-1000000, 1 << 30};
    add(outside, " wholly outside");
    outside.coordinate = {-2147483647 - 1, -2147483647 - 1};
    add(outside, " at the least coordinates");
    outside.coordinate = {1 << 30, 7};
    add(outside, " wholly beyond axis 0");
    outside.coordinate = {8, 1 << 30};
    add(outside, " wholly beyond axis 1");

    Case strided = basic_case(4, DType::bf16, swizzle);
    strided.map.element_strides = {1, 3, 2, 1};
    add(strided, " element strides 3, 2, 1");
    strided.coordinate = {-8, -2, 3, 3};
    add(strided, " element strides, across the sides");
    strided.map.element_strides = {1, 8, 1, 1};
    add(strided, " element stride 8");
    strided.map.element_strides = {2, 1, 1, 1};
    add(strided, " element stride of axis 0, which is ignored");

    for (int const offset : {128, 512, 896, 1024, 1408}) {
      Case moved = basic_case(2, DType::f32, swizzle);
      moved.shared_offset = offset;
      add(moved, " at shared offset " + std::to_string(offset));
    }
    for (int narrow = 16; narrow < span_bytes(swizzle); narrow += 16) {
      Case c = basic_case(3, DType::f16, swizzle);
      c.map.box[0] = narrow / 2;
      add(c, " in rows of " + std::to_string(narrow) + " bytes");
    }
    Case large = basic_case(2, DType::f16, swizzle);
    large.map.extents = {300, 400};
    large.map.strides = {608};
    large.map.box[1] = 256;
    if (swizzle == TmaSwizzle::none) large.map.box = {16, 256};
    large.coordinate = {8, 200};
    add(large, " of 256 rows");
  }
  Case wide = basic_case(2, DType::f64, TmaSwizzle::none);
  wide.map.extents = {300, 20};
  wide.map.strides = {2400};
  wide.map.box = {256, 8};
  wide.coordinate = {60, 15};
  add(wide, " of 2048 bytes a row");
  Case flat = basic_case(2, DType::bf16, TmaSwizzle::b128);
  flat.map.strides = {0};
  add(flat, " of one row again and again");
  return all;
}

/// Images of every rank, swizzle and element width: with and without padding, steps, dilation;
/// pixels of one image and of several, and beyond the last.
inline std::vector<Case> image_cases() {
  std::vector<Case> all;
  constexpr TmaSwizzle kSwizzles[] = {TmaSwizzle::none, TmaSwizzle::b32, TmaSwizzle::b64,
                                      TmaSwizzle::b128};
  std::uint32_t seed = 1;
  auto const any = [&](int least, int most) {
    seed = seed * 1664525u + 1013904223u;  // Numerical Recipes' generator
    return least + static_cast<int>((seed >> 16) % static_cast<std::uint32_t>(most - least + 1));
  };
  for (TmaSwizzle const swizzle : kSwizzles) {
    for (int rank = 3; rank <= 5; ++rank) {
      for (DType const dtype : {DType::u8, DType::bf16, DType::f32, DType::f64}) {
        for (int i = 0; i < 3; ++i) {
          Case c = basic_case(rank, dtype, swizzle);
          c.name += " image " + std::to_string(i);
          c.map.mode = TmaMode::im2col;
          if (dtype != DType::u8 && i == 1) c.map.fill = TmaFill::nans;
          c.map.box = {c.map.box[0], any(1, 100)};
          c.coordinate[0] = i == 2 ? aligned(c.map, c.map.extents[0] - 3) : 0;
          std::int64_t stride = c.map.strides[0];
          auto const last = static_cast<std::size_t>(rank) - 1;
          for (std::size_t axis = 1; axis < last; ++axis) {
            c.map.extents[axis] = any(7, 11);
            c.map.element_strides[axis] = any(1, 3);
            c.map.lower_corner[axis - 1] = any(-3, 1);
            c.map.upper_corner[axis - 1] = any(-2, 2);
            c.offset[axis - 1] = static_cast<std::uint16_t>(any(0, 4));
            c.coordinate[axis] = c.map.lower_corner[axis - 1];
            stride *= c.map.extents[axis];
            c.map.strides[axis] = stride;
          }
          c.coordinate[1] += c.map.element_strides[1];
          c.map.extents[last] = 3;
          c.coordinate[last] = any(0, 2);
          all.push_back(c);
        }
      }
    }
  }
  return all;
}

/// Boxes that begin before the tensor, on each axis and on all: to load, not to store.
inline std::vector<Case> cases_before(int rank) {
  std::vector<Case> all;
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(rank); ++axis) {
    Case c = basic_case(rank, DType::u32, TmaSwizzle::b128);
    c.coordinate[axis] = axis == 0 ? -4 : -1;
    c.name += " before axis " + std::to_string(axis);
    all.push_back(c);
  }
  Case least = basic_case(rank, DType::u32, TmaSwizzle::b128);
  least.coordinate.fill(-2147483647 - 1);
  least.name += " at the least coordinates";
  all.push_back(least);
  return all;
}

/// Boxes that begin at no multiple of 16 bytes of the tensor's rows: inside, across both
/// sides, outside.
inline std::vector<Case> misaligned_cases() {
  std::vector<Case> all;
  for (TmaSwizzle const swizzle : {TmaSwizzle::none, TmaSwizzle::b128}) {
    for (DType const dtype : {DType::u8, DType::bf16, DType::f32, DType::f64}) {
      Case c = basic_case(2, dtype, swizzle);
      std::string const name = c.name;
      auto const add = [&](int x, int y) {
        c.coordinate = {x, y};
        c.name = name + " at (" + std::to_string(x) + ", " + std::to_string(y) + ")";
        all.push_back(c);
      };
      add(3, 7);
      if (swizzle == TmaSwizzle::none) continue;
      add(-1, 7);
      add(3, -100);
      add(static_cast<int>(c.map.extents[0]) + 4, 7);
    }
  }
  return all;
}

}  // namespace tegula::tma_test
