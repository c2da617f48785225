#pragma once

#include <cstdint>

#include "tegula/layout/swizzle.hpp"

namespace tegula {

/// Shared memory: 32 banks of one 4-byte word; byte address a lies in word a / 4, in bank (a / 4)
/// % 32.
inline constexpr int kBanks = 32;
inline constexpr int kBankBytes = 4;

constexpr std::int64_t word_of(std::int64_t address) { return address >> 2; }
constexpr int bank_of(std::int64_t address) {
  return static_cast<int>(word_of(address) & (kBanks - 1));
}

namespace detail {

/// The bank of a bit's address, which may be modulo 2^64.
constexpr int bank_of_bit(std::uint64_t bit) {
  return static_cast<int>(bit / (8 * kBankBytes) % kBanks);
}

}  // namespace detail

/// The bank that holds the first bit of element `offset` of an array of elements of `element_bits`.
constexpr int bank_of_element(std::int64_t offset, int element_bits) {
  return detail::bank_of_bit(static_cast<std::uint64_t>(offset) *
                             static_cast<std::uint64_t>(element_bits));
}

/// How many lanes of a warp are served together when each accesses `bytes` (1, 2, 4, 8 or 16): a
/// phase moves at most 128 bytes. The eight row addresses of one matrix of ldmatrix or stmatrix are
/// a phase too, as lanes of 16 bytes.
constexpr int lanes_per_phase(int bytes) { return bytes == 16 ? 8 : bytes == 8 ? 16 : 32; }

/// Wavefronts (passes over the banks) that `lanes` lanes take to access `bytes` bytes each at
/// these byte addresses, in phases of lanes_per_phase(bytes) lanes. Lanes of a phase that touch
/// the same word share it; different words of one bank follow one another. Addresses must be
/// multiples of `bytes`.
constexpr int wavefronts(std::int64_t const* addresses, int lanes, int bytes) {
  int const words_per_lane = bytes < kBankBytes ? 1 : bytes / kBankBytes;
  int const phase = lanes_per_phase(bytes);
  int total = 0;
  for (int first = 0; first < lanes; first += phase) {
    std::int64_t words[kBanks] =
        {};  // distinct words seen in this phase (128 bytes at most), chained by bank
    int next[kBanks] = {};
    int head[kBanks] = {};  // 1 + index of the last word seen in the bank; 0 for none
    int depth[kBanks] = {};
    int seen = 0;
    int worst = 0;
    for (int lane = first; lane < lanes && lane < first + phase; ++lane) {
      std::int64_t const first_word = word_of(addresses[lane]);
      for (int i = 0; i < words_per_lane; ++i) {
        std::int64_t const word = first_word + i;
        int const bank = static_cast<int>(word & (kBanks - 1));
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

/// What a warp (or several) asks of a shared tile: every thread reads or writes vectors of
/// `bytes` bytes.
///
/// `threads_values` maps (thread, value) to the flat index of an element in the tile, the form in
/// which atoms, tiled copies and tiled MMAs have it. Each bytes * 8 / element_bits consecutive
/// values are one vector of one instruction, and so one step; value modes of any nesting and any
/// number of steps and warps are taken. An instruction is issued by `lanes` consecutive threads.
///
///     ld.shared, st.shared, cp.async      32 lanes, 1 to 16 bytes: each lane's vector
///     ldmatrix, stmatrix .x4, .x2, .x1    32, 16, 8 lanes, 16 bytes: each lane's row of a matrix;
///                                         .trans has the same rows
struct SharedAccess {
  Layout threads_values;
  int element_bits = 16;
  int bytes = 16;
  int lanes = 32;

  /// How many values one instruction moves per lane.
  constexpr int vector() const { return bytes * 8 / element_bits; }

  friend constexpr bool operator==(SharedAccess const&, SharedAccess const&) = default;
};

/// The access by ld.shared, st.shared or cp.async of `bytes` bytes a thread.
constexpr SharedAccess vector_access(Layout const& threads_values, int element_bits, int bytes) {
  return {
      .threads_values = threads_values, .element_bits = element_bits, .bytes = bytes, .lanes = 32};
}

/// The access by ldmatrix or stmatrix of `matrices` (1, 2 or 4) matrices, where `threads_values`
/// maps (row address, element of the row, steps...) to the tile: 8 * matrices row addresses an
/// instruction, 16 bytes a row.
constexpr SharedAccess matrix_access(Layout const& threads_values, int element_bits,
                                     int matrices = 4) {
  if (matrices != 1 && matrices != 2 && matrices != 4)
    refuse("matrix_access", "1, 2 or 4 matrices", matrices);
  return {.threads_values = threads_values,
          .element_bits = element_bits,
          .bytes = 16,
          .lanes = 8 * matrices};
}

/// The access of threads placed by layouts of coordinates in a tile: a thread's vector of `bytes`
/// bytes begins at the coordinate threads(t) + steps(s), along axis k for a stride of 1@k, and runs
/// along axis `contiguous`; axis k is mode k of `tile`, which is the memory's shape. The steps are
/// those of a thread and the origins of warps alike: ():() for one instruction. Refused where an
/// access leaves the tile. For ldmatrix and stmatrix the threads are the lanes' row addresses.
constexpr SharedAccess coordinate_access(Layout const& threads, Layout const& steps, int contiguous,
                                         Tuple const& tile, int element_bits, int bytes) {
  bool const sensible = element_bits >= 1 && bytes >= 1 && bytes <= 16 && contiguous >= 0;
  if (!sensible)
    refuse("coordinate_access", "a vector has 1 to 16 bytes along an axis, elements 1 bit or more",
           element_bits, bytes, contiguous);
  SharedAccess access{
      .threads_values = {}, .element_bits = element_bits, .bytes = bytes, .lanes = 32};
  Layout vector;
  vector.append_leaf(access.vector(), {1, contiguous});
  std::int64_t along[kMaxLeaves] = {};  // the greatest coordinate, for each mode of the tile
  auto const flat = [&](Layout placed) {
    for (int i = 0; i < placed.count; ++i) {
      int const axis = placed.axes[i] - 1;
      if (axis >= tile.rank() || (axis < 0 && placed.strides[i] != 0) || placed.strides[i] < 0) {
        refuse("coordinate_access", "a stride is not along a mode of the tile, or negative", placed,
               tile);
      }
      placed.axes[i] = 0;
      if (axis < 0) continue;
      along[axis] =
          detail::add(along[axis], detail::multiply(placed.extents[i] - 1, placed.strides[i]));
      for (int mode = 0; mode < axis; ++mode)
        placed.strides[i] = detail::multiply(placed.strides[i], tile[mode].size());
    }
    return placed;
  };
  Layout const thread_index = flat(threads);
  Layout const vector_index = flat(vector);
  Layout const step_index = flat(steps);
  for (int mode = 0; mode < tile.rank(); ++mode) {
    if (along[mode] >= tile[mode].size())
      refuse("coordinate_access", "an access leaves the tile", threads, steps, tile);
  }
  access.threads_values = make_layout(
      thread_index, step_index.count == 0 ? vector_index : make_layout(vector_index, step_index));
  return access;
}

/// What an access costs: instructions (warp by step), the wavefronts they take, and the fewest that
/// instructions of their width can.
struct BankReport {
  int instructions = 0;
  int wavefronts = 0;
  int ideal = 0;

  friend constexpr bool operator==(BankReport const&, BankReport const&) = default;
};

namespace detail {

/// The most instructions that an access may have: each is looked at.
inline constexpr std::int64_t kMostInstructions = 1 << 20;

/// The instructions of an access, checked.
struct AccessShape {
  int vector;  // elements a lane moves
  int lanes;   // of one instruction
  int groups;  // of lanes: how many warps
  int steps;   // instructions a warp issues
};

constexpr AccessShape access_shape(SharedAccess const& access) {
  Layout const& tv = access.threads_values;
  int const bytes = access.bytes;
  if (tv.rank() != 2) refuse("bank_conflicts", "an access has the modes (thread, value)", tv);
  if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8 && bytes != 16)
    refuse("bank_conflicts", "a lane moves 1, 2, 4, 8 or 16 bytes", bytes);
  if (access.element_bits < 1 || bytes * 8 % access.element_bits != 0) {
    refuse("bank_conflicts", "the bytes of a lane must be a whole number of elements", bytes,
           access.element_bits);
  }
  if (access.lanes < 1 || access.lanes > 32)
    refuse("bank_conflicts", "an instruction has 1 to 32 lanes", access.lanes);
  std::int64_t const threads = tv[0].size();
  std::int64_t const values = tv[1].size();
  int const lanes = threads < access.lanes ? static_cast<int>(threads) : access.lanes;
  if (threads % lanes != 0)
    refuse("bank_conflicts", "the threads must be a whole number of instructions' lanes", tv,
           access.lanes);
  if (values % access.vector() != 0) {
    refuse("bank_conflicts", "the values of a thread must be a whole number of vectors", tv,
           access.vector());
  }
  std::int64_t const groups = threads / lanes;
  std::int64_t const steps = values / access.vector();
  if (groups > kMostInstructions / steps)
    refuse("bank_conflicts", "an access has at most 2^20 instructions", tv, access.lanes,
           access.vector());
  return {access.vector(), lanes, static_cast<int>(groups), static_cast<int>(steps)};
}

/// The byte addresses of the lanes of instruction (group, step), evaluated one by one, each vector
/// checked to be contiguous and aligned.
constexpr void lane_addresses(SharedAccess const& access, AccessShape const& shape,
                              SwizzledLayout const& memory, int group, int step,
                              std::int64_t* addresses) {
  std::int64_t const threads = static_cast<std::int64_t>(shape.lanes) * shape.groups;
  std::int64_t value_part[128] = {};
  for (int i = 0; i < shape.vector; ++i) {
    value_part[i] =
        access.threads_values((i + static_cast<std::int64_t>(step) * shape.vector) * threads);
  }
  for (int lane = 0; lane < shape.lanes; ++lane) {
    std::int64_t const thread_part =
        access.threads_values(lane + static_cast<std::int64_t>(group) * shape.lanes);
    std::int64_t const first = memory(thread_part + value_part[0]);
    for (int i = 1; i < shape.vector; ++i) {
      if (memory(thread_part + value_part[i]) != first + i) {
        refuse("bank_conflicts", "the elements of one lane's vector are not contiguous in memory",
               access.threads_values, memory);
      }
    }
    std::int64_t const bit = multiply(first, access.element_bits);
    if (bit % (access.bytes * 8) != 0) {
      refuse("bank_conflicts", "a lane's vector is not aligned to its own width",
             access.threads_values, memory, access.bytes);
    }
    addresses[lane] = bit / 8;
  }
}

/// The offset, before the swizzle, of each bit of a tile's flat index; the index's last leaf is
/// taken as unbounded. count is -1 where an extent before the last is no power of two, so that bits
/// of the index have no offsets of their own.
struct TileBits {
  int count = 0;
  bool disjoint = true;  // no two offsets share a bit, so that adding them is exclusive-or
  std::uint64_t used = 0;
  std::int64_t offsets[62] = {};
};

constexpr TileBits tile_bits(Layout const& tile) {
  TileBits bits;
  for (int i = 0; i < tile.count; ++i) {
    std::int64_t const extent = tile.extents[i];
    if (i + 1 < tile.count && (extent & (extent - 1)) != 0) return {.count = -1};
    for (std::int64_t step = 1; step < extent; step *= 2) {
      std::int64_t const offset = tile.strides[i] * step;
      bits.disjoint =
          bits.disjoint && offset >= 0 && (bits.used & static_cast<std::uint64_t>(offset)) == 0;
      bits.used |= static_cast<std::uint64_t>(offset);
      bits.offsets[bits.count++] = offset;
    }
  }
  return bits;
}

/// Whether the index x + n * y of a mode, with 0 <= x < n, maps to the sum of what x and n * y map
/// to: a boundary of leaves, or a whole division of one leaf, falls on n. With n a power of two
/// every leaf below it is one too.
constexpr bool splits_at(Layout const& mode, std::int64_t n) {
  std::int64_t before = 1;
  for (int i = 0; i < mode.count && before < n; ++i) {
    if (n % before != 0) return false;
    std::int64_t const through = before * mode.extents[i];
    if (through > n && i + 1 < mode.count && through % n != 0) return false;
    before = through;
  }
  return true;
}

/// Whether all instructions of an access provably cost the same, vectors contiguous and aligned
/// included. It is so where the bits of the tile's index that vary within an instruction and those
/// that vary between instructions are disjoint, and each has an offset of its own, combined either
/// by exclusive-or (swizzled or not) or by addition (not swizzled). Another instruction's addresses
/// are then the first's, exclusive-or or plus a constant: a permutation of words and of banks.
/// Writes the byte addresses of an instruction.
constexpr bool uniform_addresses(SharedAccess const& access, AccessShape const& shape,
                                 SwizzledLayout const& memory, std::int64_t* addresses) {
  Layout const& tv = access.threads_values;
  TileBits const tile = tile_bits(memory.layout);
  bool const exclusive = tile.disjoint && memory.offset >= 0 &&
                         (static_cast<std::uint64_t>(memory.offset) & tile.used) == 0;
  if (tile.count < 0 || (!exclusive && !memory.swizzle.identity())) return false;
  if (access.element_bits % 8 != 0 || (shape.lanes & (shape.lanes - 1)) != 0 ||
      (shape.vector & (shape.vector - 1)) != 0)
    return false;
  if (!splits_at(tv[0], shape.lanes) || !splits_at(tv[1], shape.vector)) return false;

  // What moves the address between instructions, or of a whole vector, must keep vectors aligned,
  // and words whole.
  std::int64_t const unit = access.bytes * 8 / access.element_bits;
  std::int64_t const words =
      access.bytes < kBankBytes && !exclusive ? kBankBytes * 8 / access.element_bits : unit;
  auto const offset_of = [&](std::int64_t index, std::int64_t multiple, bool& good) {
    std::int64_t offset = 0;
    good = good && index >= 0 && index >> tile.count == 0;
    for (int b = 0; b < tile.count && good; ++b) {
      if ((index >> b & 1) == 0) continue;
      std::int64_t const moved = memory.swizzle(tile.offsets[b]);
      good = moved % multiple == 0;
      offset = exclusive ? offset ^ moved : offset + moved;
    }
    return offset;
  };

  bool good = true;
  std::int64_t const threads = static_cast<std::int64_t>(shape.lanes) * shape.groups;
  std::int64_t within = 0;  // the bits of the index that vary within an instruction
  std::int64_t lane_offsets[5] = {};
  for (int b = 0; 1 << b < shape.lanes; ++b) {
    std::int64_t const index = tv(std::int64_t{1} << b);
    good = good && index >= 0 && (within & index) == 0;
    within |= index;
    lane_offsets[b] = offset_of(index, unit, good);
  }
  for (int i = 1; i < shape.vector; i *= 2) {
    std::int64_t const index = tv(i * threads);
    good = good && index > 0 && (within & index) == 0;
    within |= index;
    if (good && offset_of(index, 1, good) != i) return false;
  }
  std::int64_t between = 0;
  for (int i = 0; i < shape.groups * shape.steps; ++i) {
    std::int64_t const value = static_cast<std::int64_t>(i / shape.groups) * shape.vector;
    between |= tv(static_cast<std::int64_t>(i % shape.groups) * shape.lanes + value * threads);
  }
  std::int64_t const start = memory.swizzle(memory.offset);
  offset_of(between, words, good);
  if (!good || (within & between) != 0 || start % words != 0) return false;

  for (int lane = 0; lane < shape.lanes; ++lane) {
    std::int64_t offset = start;
    for (int b = 0; 1 << b < shape.lanes; ++b) {
      if ((lane >> b & 1) != 0)
        offset = exclusive ? offset ^ lane_offsets[b] : offset + lane_offsets[b];
    }
    addresses[lane] = multiply(offset, access.element_bits) / 8;
  }
  return true;
}

}  // namespace detail

/// The cost of every instruction of an access to a tile stored by `memory` (in elements, from a
/// base aligned to 128 bytes). Refused where a lane's vector is not contiguous, or not aligned to
/// its width. Evaluated address by address; an access that is linear over F2 costs the same at
/// every step and warp, and is evaluated once.
///
/// The counts are the hardware's: on an H100 each of ld.shared and st.shared of 4 to 16 bytes,
/// ld.shared of 2, ldmatrix.x1, .x2, .x4 and .x4.trans, and stmatrix.x4 took one cycle per
/// wavefront counted here in each of 600 address patterns (bench/probe/bank_wavefronts.cu). The one
/// exception is on the safe side: a vector load of which neighbouring lanes read the same address
/// may take fewer.
constexpr BankReport bank_report(SharedAccess const& access, SwizzledLayout const& memory) {
  detail::AccessShape const shape = detail::access_shape(access);
  int const phase = lanes_per_phase(access.bytes);
  BankReport report;
  report.instructions = shape.groups * shape.steps;
  report.ideal = report.instructions * ((shape.lanes + phase - 1) / phase);
  std::int64_t addresses[32] = {};
  if (detail::uniform_addresses(access, shape, memory, addresses)) {
    report.wavefronts = report.instructions * wavefronts(addresses, shape.lanes, access.bytes);
    return report;
  }
  for (int group = 0; group < shape.groups; ++group) {
    for (int step = 0; step < shape.steps; ++step) {
      detail::lane_addresses(access, shape, memory, group, step, addresses);
      report.wavefronts += wavefronts(addresses, shape.lanes, access.bytes);
    }
  }
  return report;
}

/// Bank conflicts of an access: wavefronts beyond the fewest possible, over all its instructions. 0
/// means conflict-free, so that a kernel says static_assert(bank_conflicts(access, layout) == 0).
/// Errors and cost as of bank_report.
constexpr int bank_conflicts(SharedAccess const& access, SwizzledLayout const& memory) {
  BankReport const report = bank_report(access, memory);
  return report.wavefronts - report.ideal;
}

}  // namespace tegula
