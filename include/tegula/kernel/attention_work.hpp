#pragma once

#include <type_traits>

#include "tegula/arch/global.hpp"
#include "tegula/kernel/attention_mask.hpp"
#include "tegula/kernel/attention_sm90_config.hpp"
#include "tegula/kernel/packed_heads.hpp"
#include "tegula/pipeline/tile_queue.hpp"

/// Which tile of attention_sm90 or attention_sm100 a CTA computes next, and what it is: its rows,
/// and the blocks of keys that they see. Of one length for all sequences (HeadTiles), or with a
/// length for each (SequenceTiles). Either packs heads (PackedHeads).
namespace tegula {

/// The first position of a consumer of a tile, which is number `block` of its packed head's. C,
/// here and below, is the kernel's configuration.
template <auto C>
TEGULA_DEVICE int first_position(PackedHeads const& packed, int block, int consumer) {
  return (block * C.consumers + consumer) * packed.positions;
}
/// The blocks of keys that the rows of a tile see; and those that a consumer's see.
template <auto C>
TEGULA_DEVICE KeyBlocks key_blocks_of_tile(AttentionMask const& mask, PackedHeads const& packed,
                                           int block) {
  return key_blocks(mask, first_position<C>(packed, block, 0), C.consumers * packed.positions,
                    C.block_n);
}
template <auto C>
TEGULA_DEVICE KeyBlocks key_blocks_of_consumer(AttentionMask const& mask, PackedHeads const& packed,
                                               int block, int consumer) {
  return key_blocks(mask, first_position<C>(packed, block, consumer), packed.positions, C.block_n);
}

/// Tiles of packed heads' rows, of sequences of one length, in the order of p.order. A tile is its
/// index.
template <auto C> struct HeadTiles {
  using Params = AttentionSm90Params;
  using Tile = int;
  TEGULA_DEVICE static Tile none() { return -1; }
  TEGULA_DEVICE static bool is_tile(Tile tile) { return tile != -1; }

  /// What a tile is.
  class Work {
   public:
    TEGULA_DEVICE Work(Params const& p, Tile tile) : p_(p), at_(p.order.block(tile)) {}

    TEGULA_DEVICE RowBlock const& at() const { return at_; }
    TEGULA_DEVICE int batch() const { return at_.batch; }
    TEGULA_DEVICE int head() const { return at_.head; }
    TEGULA_DEVICE AttentionMask const& mask() const { return p_.mask; }
    TEGULA_DEVICE static constexpr int parts() { return 1; }
    TEGULA_DEVICE PackedRows rows(int consumer) const {
      return {.packed = p_.packed,
              .packed_head = at_.head,
              .first_position = first_position<C>(p_.packed, at_.block, consumer),
              .batch = at_.batch,
              .begin = 0,
              .length = p_.mask.seq_q};
    }
    /// The blocks of keys of the tile's rows; and those of a consumer's.
    TEGULA_DEVICE KeyBlocks blocks() const {
      return key_blocks_of_tile<C>(p_.mask, p_.packed, at_.block);
    }
    TEGULA_DEVICE KeyBlocks blocks_of(int consumer) const {
      return key_blocks_of_consumer<C>(p_.mask, p_.packed, at_.block, consumer);
    }

   private:
    Params const& p_;
    RowBlock at_;
  };

  /// The tiles of one CTA, for one thread of it.
  class Dealer {
   public:
    TEGULA_DEVICE explicit Dealer(Params const& p) : dealer_(p.counter, p.order.count(), p.ctas) {}

    TEGULA_DEVICE int first() const { return dealer_.first(); }
    /// The tile of an index, if there is one.
    TEGULA_DEVICE bool find(int& index, Tile& tile) const {
      tile = index;
      return dealer_.is_tile(index);
    }
    TEGULA_DEVICE int after(int index) const { return dealer_.after(index); }
    TEGULA_DEVICE void leave() const { dealer_.leave(); }

   private:
    TileDealer dealer_;
  };
};

/// A tile as the thread that takes it describes it: what the sequences' lengths say is read once.
struct alignas(16) SequenceTile {
  int batch = 0;
  int head = 0;   ///< a packed one
  int block = 0;  ///< of positions
  int part = 0;   ///< of the keys
  int slot = 0;   ///< number of the tile's first part in AttentionServing::partial and arrivals
  int q_begin = 0, q_length = 0, k_length = 0;
};

/// Tiles of packed heads' rows of sequences of their own lengths, in parts of the keys: see
/// AttentionServing. Indices run over the parts of all tiles, sequence by sequence, the last
/// positions of each first.
template <auto C> struct SequenceTiles {
  using Params = AttentionSm90Params;
  using Tile = SequenceTile;
  TEGULA_DEVICE static Tile none() { return {.batch = -1}; }
  TEGULA_DEVICE static bool is_tile(Tile const& tile) { return tile.batch >= 0; }

  class Work {
   public:
    TEGULA_DEVICE Work(Params const& p, Tile const& tile) : p_(p), tile_(tile) {}

    TEGULA_DEVICE Tile const& tile() const { return tile_; }
    TEGULA_DEVICE int batch() const { return tile_.batch; }
    TEGULA_DEVICE int head() const { return tile_.head; }
    TEGULA_DEVICE AttentionMask mask() const {
      return {tile_.q_length, tile_.k_length, p_.mask.left, p_.mask.right};
    }
    TEGULA_DEVICE PackedRows rows(int consumer) const {
      return {.packed = p_.packed,
              .packed_head = tile_.head,
              .first_position = first_position<C>(p_.packed, tile_.block, consumer),
              .batch = p_.serving.q_begin == nullptr ? tile_.batch : 0,
              .begin = tile_.q_begin,
              .length = tile_.q_length};
    }
    /// The blocks of keys of all parts of the tile.
    TEGULA_DEVICE KeyBlocks all_blocks() const {
      return key_blocks_of_tile<C>(mask(), p_.packed, tile_.block);
    }
    TEGULA_DEVICE int parts() const {
      KeyBlocks const all = all_blocks();
      int const size = p_.serving.part_blocks;
      return all.empty() ? 1 : (all.last - all.first + size - 1) / size;
    }
    /// Those of this part; and those of it that a consumer's rows see.
    TEGULA_DEVICE KeyBlocks blocks() const {
      KeyBlocks blocks = all_blocks();
      int const size = p_.serving.part_blocks, first = blocks.first + tile_.part * size;
      if (first + size < blocks.last) blocks.last = first + size;
      blocks.first = first;
      return blocks;
    }
    TEGULA_DEVICE KeyBlocks blocks_of(int consumer) const {
      KeyBlocks const part = blocks();
      KeyBlocks own = key_blocks_of_consumer<C>(mask(), p_.packed, tile_.block, consumer);
      if (own.first < part.first) own.first = part.first;
      if (own.last > part.last) own.last = part.last;
      return own;
    }

   private:
    Params const& p_;
    Tile const& tile_;
  };

  /// Walks through the sequences as the indices grow.
  class Dealer {
   public:
    TEGULA_DEVICE explicit Dealer(Params const& p) : p_(p), dealer_(p.counter, 0, p.ctas) {
      read();
    }

    TEGULA_DEVICE int first() const { return dealer_.first(); }
    TEGULA_DEVICE int after(int index) const { return dealer_.after(index); }
    TEGULA_DEVICE void leave() const { dealer_.leave(); }

    /// The tile of the index, or of the first after it that there is, to which `index` moves on. A
    /// tile whose window leaves it fewer parts than others has indices for nothing.
    TEGULA_DEVICE bool find(int& index, Tile& tile) {
      for (;; index = dealer_.after(index)) {
        while (index - before_ >= blocks_ * p_.serving.heads * parts_) {
          before_ += blocks_ * p_.serving.heads * parts_;
          if (++batch_ >= p_.serving.batches) return false;
          read();
        }
        int const within = index - before_, number = within / parts_,
                  block = number / p_.serving.by_heads;
        tile = {.batch = batch_,
                .head = number - block * p_.serving.heads,
                .block = blocks_ - 1 - block,
                .part = within - number * parts_,
                .slot = before_ + number * parts_,
                .q_begin = q_begin_,
                .q_length = q_length_,
                .k_length = k_length_};
        if (tile.part < Work(p_, tile).parts()) return true;
      }
    }

   private:
    /// The lengths of the sequence batch_, and what follows from them.
    TEGULA_DEVICE void read() {
      AttentionServing const& s = p_.serving;
      q_begin_ = s.q_begin == nullptr ? 0 : ld_global<int>(s.q_begin + batch_);
      q_length_ = p_.mask.seq_q;
      int room = p_.mask.seq_k;  // of keys
      if (s.q_begin != nullptr)
        q_length_ = length_within(ld_global<int>(s.q_begin + batch_ + 1) - q_begin_, p_.mask.seq_q);
      if (s.k_begin != nullptr)
        room = length_within(
            ld_global<int>(s.k_begin + batch_ + 1) - ld_global<int>(s.k_begin + batch_), room);
      k_length_ = room;
      if (s.k_length != nullptr)
        k_length_ = length_within(
            length_within(ld_global<int>(s.k_length + batch_), room) + new_keys(s.new_keys), room);
      int const positions = C.consumers * p_.packed.positions;
      blocks_ = (q_length_ + positions - 1) / positions;
      int const all = (k_length_ + C.block_n - 1) / C.block_n,
                seen = all < s.most_blocks ? all : s.most_blocks;
      parts_ = seen <= s.part_blocks ? 1 : (seen + s.part_blocks - 1) / s.part_blocks;
    }

    TEGULA_DEVICE int new_keys(NewKeys const& keys) const {
      if (keys.begin == nullptr) return keys.most;
      return length_within(
          ld_global<int>(keys.begin + batch_ + 1) - ld_global<int>(keys.begin + batch_), keys.most);
    }

    Params const& p_;
    TileDealer dealer_;
    int batch_ = 0;
    int before_ = 0;  ///< indices of the sequences before it
    int blocks_, parts_, q_begin_, q_length_, k_length_;
  };
};

/// The block of keys before whose loads a producer takes its next tile: the last but one, or the
/// only one. Taken late, a tile goes to the CTA that is about to finish; the answer, which comes
/// from memory, is there before the last block's stage is free.
TEGULA_DEVICE int takes_next_at(KeyBlocks const& blocks) {
  return blocks.last - blocks.first > 1 ? blocks.first + 1 : blocks.first;
}

/// The producer, one thread: every tile of the CTA to the queue, and fetch(work, blocks, take_next)
/// for those that see keys. `fetch` calls take_next() once.
template <class Tiles, class Params, class Queue, class Fetch>
TEGULA_DEVICE void deal_tiles(Params const& p, Queue& queue, Fetch fetch) {
  typename Tiles::Dealer dealer{p};
  typename Tiles::Tile tile;
  for (int index = dealer.first(); dealer.find(index, tile);) {
    queue.put(tile);
    int next = index;
    auto const take_next = [&] { next = dealer.after(index); };
    typename Tiles::Work const work{p, tile};
    if (KeyBlocks const blocks = work.blocks(); !blocks.empty())
      fetch(work, blocks, take_next);
    else
      take_next();
    index = next;
  }
  queue.put(Tiles::none());
  dealer.leave();
}

/// Those of a configuration.
template <auto C>
using AttentionTiles = std::conditional_t<C.serving, SequenceTiles<C>, HeadTiles<C>>;

}  // namespace tegula
