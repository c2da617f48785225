// Matrix descriptors: what a descriptor computed from a tile's layout means to the hardware,
// against the layout.
#include "tegula/arch/wgmma_descriptor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "refusal.hpp"
#include "tegula/layout/parse.hpp"
#include "tegula/layout/text.hpp"
#include "tegula/tensor/shared_tile.hpp"
#include "tegula/tensor/wgmma_layout.hpp"

namespace tegula {
namespace {

constexpr std::uint32_t kBase = 0x2c00;  // of the tile: a multiple of 1024

/// Where the hardware finds element (mn, k) of the operand that a descriptor describes.
std::uint32_t element_address(std::uint64_t bits_of_descriptor, bool mn_major, int bits, int mn,
                              int k) {
  WgmmaDescriptor const d = decode_wgmma_descriptor(bits_of_descriptor);
  std::uint32_t const start = wgmma_start_address(bits_of_descriptor);
  int const contiguous = (mn_major ? mn : k) * bits / 8;
  return wgmma_swizzle(
             d, start + wgmma_piece_offset(d, mn_major, mn_major ? k : mn, contiguous / 16)) +
         static_cast<std::uint32_t>(contiguous % 16);
}

/// Every element of every operand of `extent` x 32 bytes in the tile lies where the layout says.
void expect_agrees(SwizzledLayout const& tile, int bits, int extent) {
  WgmmaDescriptor const d = wgmma_descriptor(tile, bits);
  bool const along_mn = mn_major(tile);
  int const mn_extent = static_cast<int>(tile.layout[0].size());
  int const k_extent = static_cast<int>(tile.layout[1].size());
  int const stages = tile.rank() == 3 ? static_cast<int>(tile.layout[2].size()) : 1;
  int const row = std::max(d.swizzle_bytes, 16) * 8 / bits;
  int const mn_step = along_mn ? row : 8;
  int const k_step = 256 / bits;
  Layout const linear = tile.layout;
  int wrong = 0;
  for (int stage = 0; stage < stages; ++stage) {
    for (int mn0 = 0; mn0 + extent <= mn_extent; mn0 += mn_step) {
      for (int k0 = 0; k0 + k_step <= k_extent; k0 += k_step) {
        auto const place = [&](auto const& layout, int mn, int k) {
          return tile.rank() == 3 ? layout(mn, k, stage) : layout(mn, k);
        };
        std::uint32_t const start =
            kBase + static_cast<std::uint32_t>(place(linear, mn0, k0) * bits / 8);
        std::uint64_t const descriptor =
            static_cast<std::uint64_t>(d.high()) << 32 | (d.low() + (start >> 4));
        EXPECT_EQ(descriptor & kWgmmaDescriptorZeros, 0u);
        for (int mn = 0; mn < extent; ++mn) {
          for (int k = 0; k < k_step; ++k) {
            std::uint32_t const expected =
                kBase + static_cast<std::uint32_t>(place(tile, mn0 + mn, k0 + k) * bits / 8);
            wrong += element_address(descriptor, along_mn, bits, mn, k) != expected ? 1 : 0;
          }
        }
      }
    }
  }
  EXPECT_EQ(wrong, 0) << to_string(tile) << " of " << bits << " bits, operands of " << extent;
}

TEST(WgmmaDescriptor, DescribesEveryOperandTile) {
  int tiles = 0;
  for (int const bits : {8, 16, 32}) {
    for (int const contiguous : {0, 1}) {
      if (contiguous == 0 && bits != 16) continue;
      for (int const mn : {8, 16, 24, 64, 96, 128, 192, 256}) {
        for (int const k_bytes : {32, 64, 96, 128, 256}) {
          for (int const stages : {1, 3}) {
            SwizzledLayout const tile =
                swizzled_operand(bits, mn, k_bytes * 8 / bits, contiguous, stages);
            for (int const extent : {8, 64, mn}) {
              if (extent <= mn) expect_agrees(tile, bits, extent);
            }
            ++tiles;
          }
        }
      }
    }
  }
  EXPECT_EQ(tiles, 4 * 8 * 5 * 2);
}

TEST(WgmmaDescriptor, DescribesEveryCanonicalLayout) {
  // All swizzles, with distances of groups and blocks that no operand tile has.
  for (int const bits : {8, 16, 32}) {
    int const piece = 128 / bits;
    int log_piece = 0;
    while ((1 << log_piece) < piece) ++log_piece;
    for (int const swizzle_bits : {0, 1, 2, 3}) {
      int const row = piece << swizzle_bits;
      Swizzle const swizzle = swizzle_bits == 0 ? Swizzle() : Swizzle(swizzle_bits, log_piece, 3);
      for (int const apart : {8, 16, 24}) {
        // K-major: 4 groups of rows, 2 rows' width of k.
        Layout const groups = layout(tuple(8, 4), tuple(row, 2 * apart * row));
        int const width = std::max(row, 2 * piece);
        Layout const blocks = layout(tuple(row, 2 * width / row), tuple(1, apart * row));
        if (swizzle_bits > 0) {
          expect_agrees({swizzle, make_layout(groups, blocks)}, bits, 32);
        } else {
          // Groups lie beyond the pieces along k.
          expect_agrees(make_layout(layout(tuple(8, 4), tuple(row, 8 * apart * row)), blocks), bits,
                        32);
        }
        if (bits != 16) continue;
        Layout const k_groups = layout(tuple(8, 4), tuple(row, 8 * apart * row));
        Layout const mn_blocks = layout(tuple(row, 4), tuple(1, apart * row));
        expect_agrees({swizzle, make_layout(mn_blocks, k_groups)}, bits, 2 * row);
        expect_agrees({swizzle, make_layout(mn_blocks, k_groups)}, bits, 4 * row);
      }
    }
  }
}

TEST(WgmmaDescriptor, HasTheFieldsOfThePtxIsa) {
  WgmmaDescriptor const k_major = wgmma_descriptor(swizzled_operand(16, 128, 64, 1, 4), 16);
  EXPECT_EQ(k_major, (WgmmaDescriptor{128, 0, 1024}));
  EXPECT_EQ(k_major.high(), 1u << 30 | 1024 / 16);
  EXPECT_EQ(k_major.low(), 0u);
  WgmmaDescriptor const mn_major = wgmma_descriptor(swizzled_operand(16, 256, 64, 0, 4), 16);
  EXPECT_EQ(mn_major, (WgmmaDescriptor{128, 64 * 128, 1024}));
  EXPECT_EQ(mn_major.low(), 8192u / 16 << 16);
  EXPECT_EQ(wgmma_descriptor(swizzled_operand(8, 64, 64, 1), 8), (WgmmaDescriptor{64, 0, 512}));
  EXPECT_EQ(wgmma_descriptor(swizzled_operand(32, 64, 8, 1), 32), (WgmmaDescriptor{32, 0, 256}));
  EXPECT_EQ(wgmma_descriptor(parse_layout("((8,8),(8,2)):((8,64),(1,512))"), 16),
            (WgmmaDescriptor{0, 1024, 128}));
  EXPECT_EQ(wgmma_descriptor(parse_layout("((8,8),(8,2)):((1,64),(8,512))"), 16),
            (WgmmaDescriptor{0, 1024, 128}));
  for (WgmmaDescriptor const& d : {k_major, mn_major, WgmmaDescriptor{64, 16, 512},
                                   WgmmaDescriptor{32, 0, 256}, WgmmaDescriptor{0, 1024, 128}}) {
    EXPECT_EQ(decode_wgmma_descriptor(static_cast<std::uint64_t>(d.high()) << 32 | d.low() | 0x123),
              d);
  }
  EXPECT_EQ(wgmma_start_address(0x40000040'00000123ull), 0x1230u);
}

TEST(WgmmaDescriptor, RefusesOtherLayoutsWithTheExpected) {
  auto const refused = [](char const* text, int bits) {
    return sentence([&] { wgmma_descriptor(parse_swizzled_layout(text), bits); });
  };
  EXPECT_EQ(
      refused("(64,64):(64,1)", 16),
      "wgmma_descriptor((64,64):(64,1), 16, ((8,8),(8,8)):((8,512),(1,8))): tile, bits, expected: not a layout "
      "wgmma reads");
  EXPECT_EQ(
      refused("Sw<3,4,3> o (64,64):(64,1)", 16),
      "wgmma_descriptor(Sw<3,4,3> o (64,64):(64,1), 16, Sw<3,3,3> o ((8,8),(64,1)):((64,512),(1,0))): tile, "
      "bits, expected: not a layout wgmma reads");
  EXPECT_EQ(refused("Sw<2,3,3> o (64,64):(64,1)", 16).find("wgmma_descriptor("), 0u);
  EXPECT_EQ(refused("Sw<3,3,3> o (64,32):(32,1)", 16).find("wgmma_descriptor("), 0u);
  EXPECT_EQ(
      refused("Sw<3,4,3> o (128,64):(1,128)", 8),
      "wgmma_descriptor(Sw<3,4,3> o (128,64):(1,128), 8): only 16-bit elements may be contiguous along mn");
  EXPECT_NO_THROW(wgmma_descriptor(parse_swizzled_layout("Sw<3,4,3> o (128,64):(1,128)"), 8, 8));
  EXPECT_EQ(refused("Sw<3,3,3> o (64,64):(64,2)", 16),
            "mn_major(Sw<3,3,3> o (64,64):(64,2)): one of mn and k must be contiguous");
  EXPECT_EQ(refused("Sw<3,3,3> o ((8,2,2),64):((64,512,4096),1)", 16).find("wgmma_descriptor("),
            0u);
  EXPECT_EQ(
      refused("Sw<3,3,3> o ((8,8),64):((64,640),1)", 16),
      "wgmma_descriptor(Sw<3,3,3> o ((8,8),64):((64,640),1), 16): strides must be multiples of eight swizzled "
      "rows");
  EXPECT_EQ(refused("(8,8):(8,1)", 16),
            "wgmma_descriptor((8,8):(8,1), 16): k must be a multiple of 32 bytes");
}

}  // namespace
}  // namespace tegula
