#pragma once

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/global.hpp"
#include "tegula/arch/trap.hpp"
#include "tegula/atom/mma_spec.hpp"
#include "tegula/kernel/attention_work.hpp"
#include "tegula/tensor/tma.hpp"

/// How a tile's rows of Q and its blocks of K and V come to shared memory: by TMA, by one thread.
namespace tegula {

/// Bytes of a consumer's rows of Q, without those that are nobody's. C, here and below, is the
/// kernel's configuration.
template <auto C> TEGULA_DEVICE int bytes_of_rows(PackedHeads const& packed) {
  return packed.rows() * C.head_dim * bits(C.dtype) / 8;
}

/// A constant, for device code calls no constexpr function of the host.
template <auto C> inline constexpr TmaBoxes kBoxesOfRows = tma_boxes(q_tile(C));

/// Names what they come to, in a kernel's storage with a ring for each of them.
template <class Storage, class F> void name_loaded(Storage& smem, F&& name) {
  name("Q", smem.q);
  name("K", smem.k);
  name("V", smem.v);
  name("Q full", smem.ring_q.full);
  name("Q empty", smem.ring_q.empty);
  name("K full", smem.ring_k.full);
  name("K empty", smem.ring_k.empty);
  name("V full", smem.ring_v.full);
  name("V empty", smem.ring_v.empty);
}

/// These rows to a stage of (consumer_m, head_dim).
template <auto C, class S>
TEGULA_DEVICE void load_rows(TensorMap const& map, PackedRows const& rows, S const& sQ,
                             SharedAddr full, SourceLocation where = SourceLocation::current()) {
  constexpr TmaBoxes boxes = kBoxesOfRows<C>;
  int const token = rows.begin + rows.first_position;
#pragma unroll
  for (int box = 0; box < boxes.boxes_k; ++box)
    tma_load(sQ.at(where, 0, box * boxes.box_k), map,
             TmaCoordinate{box * boxes.box_k, 0, token, rows.packed_head, rows.batch}, full, where);
}

/// Of tensors of one length for all sequences.
template <auto C> class HeadLoads {
  using CopyK = TmaCopy<tma_boxes(k_tile(C))>;
  using CopyV = TmaCopy<tma_boxes(loaded_v_tile(C))>;

 public:
  using Params = AttentionSm90Params;
  using Work = typename HeadTiles<C>::Work;

  TEGULA_DEVICE HeadLoads(Params const& p, Work const& work)
      : p_(p), work_(work), at_(work.at()), kv_head_(at_.head / p.heads_per_kv_head) {}

  /// A consumer's rows of Q.
  template <class S> TEGULA_DEVICE void rows(int consumer, S const& sQ, SharedAddr full) const {
    load_rows<C>(p_.q, work_.rows(consumer), sQ, full);
  }
  /// Block n of the keys, to a stage of (block_n, head_dim).
  template <class S> TEGULA_DEVICE void keys(int n, S const& sK, SharedAddr full) const {
    auto const mK = tma_tensor<1, 0, 2, 3>(p_.k)(_, _, kv_head_, at_.batch);
    auto const gK = local_tile<C.block_n, C.head_dim>(mK, _, 0);  // (block_n, head_dim, blocks)
    copy(CopyK{}, gK(_, _, n), sK, full);
  }
  /// And of the values, to one of (head_dim_v, block_n).
  template <class S> TEGULA_DEVICE void values(int n, S const& sV, SharedAddr full) const {
    auto const mV = tma_tensor<0, 1, 2, 3>(p_.v)(_, _, kv_head_, at_.batch);
    auto const gV = local_tile<C.head_dim_v, C.block_n>(mV, 0, _);  // (head_dim_v, block_n, blocks)
    copy(CopyV{}, gV(_, _, n), sV, full);
  }

 private:
  Params const& p_;
  Work const& work_;
  RowBlock at_;
  int kv_head_;
};

/// Of sequences of their own lengths, packed or in pages.
template <auto C> class SequenceLoads {
 public:
  using Params = AttentionSm90Params;
  using Work = typename SequenceTiles<C>::Work;

  TEGULA_DEVICE SequenceLoads(Params const& p, Work const& work)
      : p_(p),
        work_(work),
        kv_head_(work.tile().head / p.heads_per_kv_head),
        k_begin_(p.serving.k_begin == nullptr
                     ? 0
                     : ld_global<int>(p.serving.k_begin + work.tile().batch)) {}

  template <class S> TEGULA_DEVICE void rows(int consumer, S const& sQ, SharedAddr full) const {
    load_rows<C>(p_.q, work_.rows(consumer), sQ, full);
  }
  template <class S> TEGULA_DEVICE void keys(int n, S const& sK, SharedAddr full) const {
    constexpr TmaBoxes boxes = k_boxes;
    block<boxes.box_k, boxes.boxes_k>(
        p_.k, n, [&](int key, int column) { return sK.at(SourceLocation::current(), key, column); },
        full);
  }
  template <class S> TEGULA_DEVICE void values(int n, S const& sV, SharedAddr full) const {
    constexpr TmaBoxes boxes = v_boxes;
    block<boxes.box_mn, boxes.boxes_mn>(
        p_.v, n, [&](int key, int column) { return sV.at(SourceLocation::current(), column, key); },
        full);
  }

 private:
  // Constants, for device code calls no constexpr function of the host.
  static constexpr TmaBoxes k_boxes = tma_boxes(k_tile(C)), v_boxes = tma_boxes(loaded_v_tile(C));

  /// Block n in boxes of box_keys keys by `Columns` of the head dim; `place` says where they go.
  template <int Columns, int Boxes, class Place>
  TEGULA_DEVICE void block(TensorMap const& map, int n, Place place, SharedAddr full,
                           SourceLocation where = SourceLocation::current()) const {
#pragma unroll 1
    for (int key = 0; key < C.block_n; key += p_.serving.box_keys) {
      Token const from = token_of(n * C.block_n + key, where);
#pragma unroll
      for (int box = 0; box < Boxes; ++box)
        tma_load(place(key, box * Columns), map,
                 TmaCoordinate{box * Columns, from.token, kv_head_, from.batch}, full, where);
    }
  }

  struct Token {
    int token, batch;
  };
  /// Where key `key` of the sequence lies. Of keys behind the last, which no row sees, on the page
  /// of the last: the table need not have more.
  TEGULA_DEVICE Token token_of(int key, SourceLocation where) const {
    AttentionServing const& s = p_.serving;
    SequenceTile const& tile = work_.tile();
    if (s.page_table == nullptr) return {k_begin_ + key, s.k_begin == nullptr ? tile.batch : 0};
    int const last = tile.k_length - 1, number = (key < last ? key : last) / s.by_page_size;
    int const page = ld_global<int>(s.page_table + tile.batch * s.table_stride + number, where);
    if (static_cast<unsigned>(page) >= static_cast<unsigned>(s.pages)) trap(where);
    return {key - key / s.by_page_size * s.page_size, page};
  }

  Params const& p_;
  Work const& work_;
  int kv_head_;
  int k_begin_;
};

/// Those of a configuration.
template <auto C>
using AttentionLoads = std::conditional_t<C.serving, SequenceLoads<C>, HeadLoads<C>>;

/// Zeros in the rows of Q that no load writes, where a group of heads does not divide a consumer's.
/// By `threads` threads, before a barrier that those who read the rows take part in.
template <auto C, class S, int Stages = q_stages(C), int Rows = consumer_rows(C)>
TEGULA_DEVICE void clear_unused_rows(PackedHeads const& packed, S const& sQ, int threads,
                                     SourceLocation where = SourceLocation::current()) {
  // A box at a time, whose rows follow each other in memory: lanes that write meet in no bank.
  constexpr TmaBoxes boxes = kBoxesOfRows<C>;
  constexpr int piece = 128 / bits(C.dtype), pieces = boxes.box_k / piece;
  int const used = packed.rows(), count = (Rows - used) * pieces;
  if (count == 0) return;
#pragma unroll 1
  for (int box = 0; box < boxes.boxes_k; ++box) {
#pragma unroll
    for (int stage = 0; stage < Stages; ++stage) {
#pragma unroll 1
      for (int i = thread_idx_here(); i < count; i += threads) {
        auto const place = [&](auto... of_stage) {
          int const column = box * boxes.box_k + i % pieces * piece;
          return sQ.at(where, used + i / pieces, column, of_stage...);
        };
        if constexpr (Stages == 1)
          st_shared(place(), RegisterBits<16>{}, where);
        else
          st_shared(place(stage), RegisterBits<16>{}, where);
      }
    }
  }
  fence_proxy_async_shared(where);  // before the tensor core reads them
}

/// Keys of a tile's last block that its sequence has, where those behind them are to be cleared in
/// V: P is 0 there, but 0 times what may lie there need not be. Else block_n.
template <auto C, class Work>
TEGULA_DEVICE int keys_to_keep(AttentionServing const& serving, Work const& work) {
  KeyBlocks const blocks = work.blocks();
  int const used = work.mask().seq_k - (blocks.last - 1) * C.block_n;
  return !serving.clears_tail || blocks.empty() || used >= C.block_n ? C.block_n : used;
}

/// Zeros in the rows of V from key `used` of the block on, which lies in `stage`: (head_dim_v,
/// block_n). By `Threads` threads, of which this is number `thread`; before they tell who reads it.
template <auto C, int Threads, class S>
TEGULA_DEVICE void clear_values_from(int used, S const& stage, int thread,
                                     SourceLocation where = SourceLocation::current()) {
  constexpr int piece = 128 / bits(C.dtype), pieces = C.head_dim_v / piece;
  int const count = (C.block_n - used) * pieces;
  for (int first = 0; first < count; first += Threads) {
    int const i = first + thread;
    if (i < count)
      st_shared(stage.at(where, i % pieces * piece, used + i / pieces), RegisterBits<16>{}, where);
  }
  // The zeros, before the tensor core reads them, or TMA writes again.
  fence_proxy_async_shared(where);
}

/// The same of a tile's last block of keys, before it is used. By `Threads` threads from number
/// `First` of the CTA on, whose named barrier is `barrier`, before any reads the stage. Left out:
/// by all warpgroups that compute.
template <AttentionSm90Config C, int First = kWarpgroupSize,
          int Threads = kWarpgroupSize* warpgroups(C), class Work, class S, class Ring>
TEGULA_DEVICE void clear_values_behind(AttentionServing const& serving, Work const& work,
                                       S const& stage, Ring const& ring,
                                       typename Ring::State const& state, int barrier,
                                       SourceLocation where = SourceLocation::current()) {
  int const used = keys_to_keep<C>(serving, work);
  if (used == C.block_n) return;
  ring.wait(state, where);
  clear_values_from<C, Threads>(used, stage, thread_idx_here() - First, where);
  cta::bar_sync(barrier, Threads, where);
}

}  // namespace tegula
