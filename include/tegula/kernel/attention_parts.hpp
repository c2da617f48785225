#pragma once

#include "tegula/arch/atomic.hpp"
#include "tegula/arch/barrier.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/atom/mma_spec.hpp"
#include "tegula/kernel/attention_work.hpp"
#include "tegula/tensor/pack.hpp"

/// Keys that are split over CTAs: each part leaves its rows' O, not yet divided by their sums, with
/// the sums and offsets of their softmax. The warpgroup that finishes a tile's rows last adds the
/// parts up, in their order, so that the result does not depend on who is last.
///
///     each part:        rows to `partial` | barrier of the warpgroup | fence, one arrival, fence
///     the last of them: ... | barrier of the warpgroup | sum of the rows
namespace tegula {

/// What the threads of a consumer meet by: a named barrier, and a flag in shared memory.
struct AttentionMeeting {
  int barrier;
  int const* flag;
};

/// Of a warpgroup that computes.
template <AttentionSm90Config C> class AttentionParts {
  using T = type_of<C.dtype>;
  static constexpr int row_floats = attention_partial_row(C);  // O, then offset and sum
  static constexpr int columns_of_o = columns_of_one(C), slots = warpgroups(C);  // of a tile
  static constexpr int threads = kWarpgroupSize;
  static_assert(!C.latent || columns_of_o % 128 == 0, "sum_up stores 128 columns at a time");

 public:
  /// `out` is where the warpgroup's columns of O go, `descale` what they are multiplied with.
  TEGULA_DEVICE AttentionParts(AttentionSm90Params const& p, AttentionOutput const& out,
                               typename SequenceTiles<C>::Work const& work, int parts,
                               int warpgroup, AttentionMeeting const& meeting, float descale)
      : p_(p),
        out_(out),
        rows_(work.rows(C.latent ? 0 : warpgroup)),
        parts_(parts),
        barrier_(meeting.barrier),
        slot_(work.tile().slot * slots + warpgroup),
        part_(work.tile().part),
        flag_(shared_address(meeting.flag)),
        descale_(descale) {}

  /// Puts a part's rows to the others', and, after the last, the sum of all to O.
  template <class Mma, class Softmax, class MO>
  TEGULA_DEVICE void add(int thread, Softmax const& softmax, Fragment<float, MO> const& tOrO,
                         SourceLocation where = SourceLocation::current()) const {
    store<Mma>(thread, softmax, tOrO, where);
    if (!is_last(thread, where)) return;
    detail::with_output_type<T>(out_, [&](auto element) {
      sum_up<Softmax::exponential, decltype(element)>(thread, where);
    });
  }

 private:
  struct alignas(8) Pair {
    float x, y;
  };
  struct alignas(16) Quad {
    float x[4];
  };

  /// Row `row` of a part.
  TEGULA_DEVICE float* partial(int part, int row) const {
    std::int64_t const slot = slot_ + part * slots;
    return p_.serving.partial + (slot * p_.serving.partial_rows + row) * row_floats;
  }

  template <class Mma, class Softmax, class MO>
  TEGULA_DEVICE void store(int thread, Softmax const& softmax, Fragment<float, MO> const& tOrO,
                           SourceLocation where) const {
    Coordinate<2> const own = Mma{thread}.origin_c();
#pragma unroll
    for (int r = 0; r < softmax.rows; ++r) {
      int const i = own[0] + step_along<0>(MO{}, r);
      float const sum = softmax.total(r);
      if (!rows_.has(i, where)) continue;
      float* const to = partial(part_, i);
      if (own[1] == 0) st_global(to + columns_of_o, Pair{softmax.offset[r], sum}, where);
#pragma unroll
      for (int c = 0; c < count_along<MO, 1>; c += 2)
        st_global(to + own[1] + step_along<1>(MO{}, c),
                  Pair{row_column(tOrO, r, c), row_column(tOrO, r, c + 1)}, where);
    }
  }

  /// Whether the other parts have come before this one.
  TEGULA_DEVICE bool is_last(int thread, SourceLocation where) const {
    cta::bar_sync(barrier_, threads, where);  // all of the rows are written
    if (thread == 0) {
      std::uint32_t* const arrivals = p_.serving.arrivals + slot_;
      fence_acq_rel<Scope::gpu>(where);  // the rows, before the arrival
      bool const last = atom_add(arrivals, 1u, where) + 1 == static_cast<unsigned>(parts_);
      fence_acq_rel<Scope::gpu>(where);  // what others wrote before theirs, for all below
      if (last) atom_exch(arrivals, 0u, where);
      st_shared(flag_, static_cast<int>(last), where);
    }
    cta::bar_sync(barrier_, threads, where);  // the flag is there
    return warp::shfl(ld_shared<int>(flag_, where), 0, warp::kAllLanes, where) != 0;
  }

  // Below, loops and branches are the same for all lanes of a warp, so that the compiler sees that
  // the lanes are together where the kernel goes on.

  /// A warp a row, four columns a lane.
  template <Exponential E, class Output>
  TEGULA_DEVICE void sum_up(int thread, SourceLocation where) const {
    int const warp = warp::shfl(thread / 32, 0, warp::kAllLanes, where);
    for (int row = warp; row < p_.serving.partial_rows; row += threads / 32) {
      if (!rows_.has(row, where)) continue;
      float const* const sink = out_.sink == nullptr ? nullptr : out_.sink + rows_.head(row);
      Output* const o = static_cast<Output*>(out_.o) + rows_.offset(out_, row);
#pragma unroll
      for (int first = 0; first < columns_of_o; first += 128) {
        int const column = first + 4 * lane_id();
        Sums const sums = sums_of<E>(row, column, where);
        RowTotal<E> const total(sums.offset, sums.sum, sink, descale_, where);
        RegisterBits<8> packed;
        packed.word[0] = pack_pair<Output>(sums.o.x[0] * total.factor, sums.o.x[1] * total.factor);
        packed.word[1] = pack_pair<Output>(sums.o.x[2] * total.factor, sums.o.x[3] * total.factor);
        if (column < out_.head_dim_v) st_global(o + column, packed, where);
        if (first == 0 && out_.lse != nullptr && lane_id() == 0)
          st_global(out_.lse + rows_.lse_offset(out_, row), total.log_sum_exp(), where);
      }
    }
  }

  /// Of a row's parts: the largest offset, and relative to it the sum of their sums and, of four
  /// columns, of their O.
  struct Sums {
    float offset = -kInfinity, sum = 0.0f;
    Quad o{};
  };
  template <Exponential E>
  TEGULA_DEVICE Sums sums_of(int row, int column, SourceLocation where) const {
    // Parts whose loads are in flight together. A consumer that is alone has registers for them.
    constexpr int ahead = C.consumers == 1 ? 16 : 4;
    Sums all;
    for (int first = 0; first < parts_; first += ahead) {
      Pair part[ahead];  // offset and sum
      Quad o[ahead];
      float largest = all.offset;
#pragma unroll
      for (int i = 0; i < ahead; ++i) {
        part[i] = {-kInfinity, 0.0f}, o[i] = {};
        if (first + i >= parts_) continue;
        float const* const from = partial(first + i, row);
        part[i] = ld_global<Pair>(from + columns_of_o, where);
        if (column < columns_of_o) o[i] = ld_global<Quad>(from + column, where);
      }
#pragma unroll
      for (int i = 0; i < ahead; ++i) largest = max_f32(largest, part[i].x);
      auto const relative = [&](float offset) {
        return offset == -kInfinity ? 0.0f : exp2<E>(offset - largest);
      };
      float const before = relative(all.offset);
      all.offset = largest;
      all.sum *= before;
#pragma unroll
      for (int c = 0; c < 4; ++c) all.o.x[c] *= before;
#pragma unroll
      for (int i = 0; i < ahead; ++i) {
        float const factor = relative(part[i].x);
        all.sum = fma(factor, part[i].y, all.sum);
#pragma unroll
        for (int c = 0; c < 4; ++c) all.o.x[c] = fma(factor, o[i].x[c], all.o.x[c]);
      }
    }
    return all;
  }

  AttentionSm90Params const& p_;
  AttentionOutput const& out_;
  PackedRows rows_;
  int parts_;
  int barrier_;
  int slot_;  ///< of the first part
  int part_;
  SharedAddr flag_;
  float descale_;
};

/// One of several parts of a tile's rows: to the others, and after the last of them, O. Of a
/// configuration that has parts; another has one.
template <AttentionSm90Config C, class Mma, class Work, class Softmax, class MO>
TEGULA_DEVICE void add_part(AttentionSm90Params const& p, AttentionOutput const& out,
                            Work const& work, int parts, int warpgroup,
                            AttentionMeeting const& meeting, int thread, Softmax const& softmax,
                            Fragment<float, MO> const& tOrO, float descale = 1.0f,
                            SourceLocation where = SourceLocation::current()) {
  if constexpr (C.serving)
    AttentionParts<C>(p, out, work, parts, warpgroup, meeting, descale)
        .template add<Mma>(thread, softmax, tOrO, where);
}

}  // namespace tegula
