#pragma once

#include <cstdint>

#include "tegula/layout/swizzle.hpp"

namespace tegula {

/// Shared memory: 32 banks of one 4-byte word; byte address a lies in word a / 4, in bank (a / 4) % 32.
inline constexpr int kBanks = 32;
inline constexpr int kBankBytes = 4;

/// How many lanes of a warp are served together when each accesses `bytes` (1, 2, 4, 8 or 16): a phase moves
/// at most 128 bytes. The eight row addresses of one matrix of ldmatrix or stmatrix are a phase too, as lanes
/// of 16 bytes.
constexpr int lanes_per_phase(int bytes) { return bytes == 16 ? 8 : bytes == 8 ? 16 : 32; }

/// Wavefronts (passes over the banks) that `lanes` lanes take to access `bytes` bytes each at these byte
/// addresses, in phases of lanes_per_phase(bytes) lanes. Lanes of a phase that touch the same word share it;
/// different words of one bank follow one another. Addresses must be multiples of `bytes`.
constexpr int wavefronts(std::int64_t const* addresses, int lanes, int bytes) {
  int const words_per_lane = bytes < kBankBytes ? 1 : bytes / kBankBytes;
  int const phase = lanes_per_phase(bytes);
  int total = 0;
  for (int first = 0; first < lanes; first += phase) {
    std::int64_t words[32 * kBankBytes] = {};  // distinct words seen in this phase, chained by bank
    int next[32 * kBankBytes] = {};
    int head[kBanks] = {};  // 1 + index of the last word seen in the bank; 0 for none
    int depth[kBanks] = {};
    int seen = 0;
    int worst = 0;
    for (int lane = first; lane < lanes && lane < first + phase; ++lane) {
      std::int64_t const word0 = addresses[lane] / kBankBytes;
      for (int i = 0; i < words_per_lane; ++i) {
        std::int64_t const word = word0 + i;
        int const bank = static_cast<int>(word % kBanks);
        int at = head[bank];
        while (at != 0 && words[at - 1] != word) at = next[at - 1];
        if (at != 0) continue;
        words[seen] = word;
        next[seen] = head[bank];
        head[bank] = ++seen;
        if (++depth[bank] > worst) worst = depth[bank];
      }
    }
    total += worst;
  }
  return total;
}

}  // namespace tegula
