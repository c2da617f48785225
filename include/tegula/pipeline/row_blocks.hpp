#pragma once

#include "tegula/layout/refuse.hpp"
#include "tegula/macros.hpp"
#include "tegula/pipeline/divisor.hpp"

/// Which rows of which head a CTA of a persistent grid computes: what attention has instead of
/// tiles of D.
namespace tegula {

/// A block of rows, and the (batch, head) pair it belongs to.
struct RowBlock {
  int block = 0;
  int head = 0;
  int batch = 0;

  constexpr bool operator==(RowBlock const&) const = default;
};

/// The order in which the blocks of rows of all heads are computed: a value, and a function from an
/// index to a block. Every index in [0, count()) is another block, and every block has one.
///
/// `group` heads run side by side, so that L2 serves the keys of all of them. Within such a group a
/// block of every head comes before the next block of any. With `last_first` a head begins with its
/// last rows, which with a causal mask see the most keys.
struct RowBlockOrder {
  int blocks = 1;  ///< of a head
  int heads = 1;   ///< of a batch
  int batches = 1;
  int group = 1;  ///< heads that run side by side: at least 1, at most heads * batches
  bool last_first = false;

  /// What block() computes with. One member, made of those above: they are not assigned to
  /// afterwards. (Of several members with initializers, nvcc makes no constant.)
  struct Groups {
    int rest;  ///< heads in the last group, where that is a smaller one
    Divisor by_group_blocks;
    Divisor by_group;
    Divisor by_rest;
    Divisor by_heads;

    constexpr Groups(int blocks, int heads, int batches, int group)
        : rest(heads * batches % at_least_1(group)),
          by_group_blocks(group * blocks),
          by_group(group),
          by_rest(rest > 0 ? rest : 1),
          by_heads(heads) {}
    constexpr bool operator==(Groups const&) const = default;

   private:
    static constexpr int at_least_1(int group) {
      if (group < 1) refuse("RowBlockOrder", "group is at least 1", group);
      return group;
    }
  };
  Groups groups = Groups(blocks, heads, batches, group);

  TEGULA_HOST_DEVICE constexpr int count() const { return blocks * heads * batches; }

  /// Precondition: 0 <= index < count().
  TEGULA_HOST_DEVICE constexpr RowBlock block(int index) const {
    int const first = index / groups.by_group_blocks * group;  // head of the group
    int const within = index - first * blocks;
    bool const whole = first + group <= heads * batches;
    int const row = whole ? within / groups.by_group : within / groups.by_rest;
    int const pair = first + within - row * (whole ? group : groups.rest);
    int const batch = pair / groups.by_heads;
    return {last_first ? blocks - 1 - row : row, pair - batch * heads, batch};
  }

  constexpr bool operator==(RowBlockOrder const&) const = default;
};

}  // namespace tegula
