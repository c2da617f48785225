#pragma once

#include <cstdint>
#include <type_traits>

#include "tegula/arch/bulk_copy.hpp"
#include "tegula/layout/refuse.hpp"
#include "tegula/tensor/element_types.hpp"
#include "tegula/tensor/global.hpp"
#include "tegula/tensor/shared.hpp"

/// Copies and reductions, by one thread, of what lies in one piece in both memories: cp.async.bulk
/// and cp.reduce.async.bulk (arch/bulk_copy.hpp), a multiple of 16 bytes at multiples of 16. They
/// clip nothing: what reaches beyond a tensor's edge ends the launch on the simulated machine.
namespace tegula {

namespace detail {
/// Bytes of a tensor that lies in one piece, or a refusal.
constexpr int bytes_in_one_piece(Layout const& offsets, int element_bytes) {
  Layout const run = coalesce(offsets);
  if (run.count != 1 || (run.extents[0] > 1 && run.strides[0] != 1))
    refuse("copy", "a bulk copy moves what lies in one piece", offsets);
  if (run.extents[0] * element_bytes % 16 != 0)
    refuse("copy", "a bulk copy moves a multiple of 16 bytes", offsets, element_bytes);
  return static_cast<int>(run.extents[0]) * element_bytes;
}
template <class Tile, class H> struct SharedPiece {
  static_assert(Tile::layout.swizzle.identity(), "copy: a bulk copy does not swizzle");
  static constexpr int bytes =
      bytes_in_one_piece(OffsetFacts<Tile, all_modes<H>>::offsets, sizeof(typename Tile::Element));
};
/// Whether elements of a map are neighbours along the unit axis: one mode is a run of them, and the
/// others have one index.
template <class M> inline constexpr bool is_one_index = map_size<Map<M>> == 1;
template <int UnitAxis, class M> inline constexpr bool is_run = false;
template <int UnitAxis, int Extent>
inline constexpr bool is_run<UnitAxis, Mode<Along<UnitAxis, Extent, 1>>> = true;
template <int UnitAxis, class G> inline constexpr bool is_one_run = false;
template <int UnitAxis, class... Modes>
inline constexpr bool is_one_run<UnitAxis, Map<Modes...>> =
    (0 + ... + (is_one_index<Modes> ? 0 : 1)) == 1 &&
    (true && ... && (is_one_index<Modes> || is_run<UnitAxis, Modes>));
/// A bulk copy moves all of its bytes: none of them may lie outside of the tensor.
template <class T, class A, Clip C, class G>
TEGULA_DEVICE void check_inside([[maybe_unused]] Tensor<Global<T, A, C>, G> const& tensor,
                                [[maybe_unused]] SourceLocation where) {
#if !TEGULA_GPU
  if constexpr (C != Clip::none) {
    auto const base = tensor.space.base();
    bool const begins = base.template inside<G>(0) && !base.template before<G>(0);
    int const inside = begins ? base.left[Global<T, A, C>::unit] : 0;
    if (inside < map_size<G>) [[unlikely]]
      cut_by_edge("a bulk copy reaches beyond the edge of the tensor, and clips nothing",
                  map_size<G>, inside > 0 ? inside : 0, "a TmaCopy clips, by its tensor map",
                  where);
  }
#endif
}
/// A piece of global memory and one of shared memory that may be copied to each other.
template <class T, class A, Clip C, class G, class Tile, class H>
TEGULA_DEVICE void check_piece(Tensor<Global<T, A, C>, G> const& tensor, SourceLocation where) {
  static_assert(is_one_run<Global<T, A, C>::unit, G> && map_size<G> == map_size<H>,
                "copy: a bulk copy moves one run of neighbours, as many elements on both sides");
  static_assert(sizeof(T) == sizeof(typename Tile::Element),
                "copy: a bulk copy moves elements as they are, of one size on both sides");
  check_copied_elements<T, typename Tile::Element>();
  check_inside(tensor, where);
}
/// Two pieces of shared memory that may be.
template <class Tile, class H, class OtherTile, class I>
TEGULA_DEVICE constexpr int bytes_of_pieces() {
  constexpr int bytes = SharedPiece<Tile, H>::bytes, other = SharedPiece<OtherTile, I>::bytes;
  static_assert(
      bytes == other && sizeof(typename Tile::Element) == sizeof(typename OtherTile::Element),
      "copy: a bulk copy moves as many elements as there are in the peer's tensor, of one size");
  return bytes;
}
}  // namespace detail

/// What copy() and reduce() are given to copy so. Hint is what L2 is told.
template <L2Policy Hint = L2Hint::none> struct BulkCopy {};

/// From global to shared memory. `full` is the mbarrier that counts the bytes.
template <L2Policy Hint, class T, class A, Clip C, class G, class Tile, int Moved, class H>
TEGULA_DEVICE void copy(BulkCopy<Hint>, Tensor<Global<T, A, C>, G> const& from,
                        Tensor<Shared<Tile, Mode<>, CopyOp::universal, Moved>, H> const& to,
                        SharedAddr full, SourceLocation where = SourceLocation::current()) {
  detail::check_piece<T, A, C, G, Tile, H>(from, where);
  bulk_load<Hint>(to.space.base_address(), from.at(where, 0), detail::SharedPiece<Tile, H>::bytes,
                  full, where);
}
/// From shared to global memory, as part of the thread's current bulk group.
template <L2Policy Hint, class T, class A, Clip C, class G, class Tile, int Moved, class H>
TEGULA_DEVICE void copy(BulkCopy<Hint>,
                        Tensor<Shared<Tile, Mode<>, CopyOp::universal, Moved>, H> const& from,
                        Tensor<Global<T, A, C>, G> const& to,
                        SourceLocation where = SourceLocation::current()) {
  detail::check_piece<T, A, C, G, Tile, H>(to, where);
  bulk_store<Hint>(to.at(where, 0), from.space.base_address(), detail::SharedPiece<Tile, H>::bytes,
                   where);
}
/// Combines each element of shared memory with the one in global memory, likewise. The types are
/// those of bulk_reduce.
template <TmaReduce Op, L2Policy Hint, class T, class A, Clip C, class G, class Tile, int Moved,
          class H>
TEGULA_DEVICE void reduce(BulkCopy<Hint>,
                          Tensor<Shared<Tile, Mode<>, CopyOp::universal, Moved>, H> const& from,
                          Tensor<Global<T, A, C>, G> const& to,
                          SourceLocation where = SourceLocation::current()) {
  static_assert(std::is_same_v<T, typename Tile::Element>,
                "reduce: a bulk reduction combines elements of one type");
  detail::check_piece<T, A, C, G, Tile, H>(to, where);
  bulk_reduce<Op, Hint>(to.at(where, 0), from.space.base_address(),
                        detail::SharedPiece<Tile, H>::bytes, where);
}

/// To the shared memory of another CTA of the cluster (in_peer). `full` is the mbarrier there that
/// counts the bytes, an address of mapa.
template <class Tile, int Moved, class H, class There, int MovedThere, class I>
TEGULA_DEVICE void copy(
    BulkCopy<>, Tensor<Shared<Tile, Mode<>, CopyOp::universal, Moved>, H> const& from,
    Tensor<Peer<Shared<There, Mode<>, CopyOp::universal, MovedThere>>, I> const& to,
    SharedAddr full, SourceLocation where = SourceLocation::current()) {
  bulk_copy_cluster(to.space.base_address(), from.space.base_address(),
                    detail::bytes_of_pieces<Tile, H, There, I>(), full, where);
}
/// Combines each element with the one there, likewise. The types are those of bulk_reduce_cluster.
template <TmaReduce Op, class Tile, int Moved, class H, class There, int MovedThere, class I>
TEGULA_DEVICE void reduce(
    BulkCopy<>, Tensor<Shared<Tile, Mode<>, CopyOp::universal, Moved>, H> const& from,
    Tensor<Peer<Shared<There, Mode<>, CopyOp::universal, MovedThere>>, I> const& to,
    SharedAddr full, SourceLocation where = SourceLocation::current()) {
  static_assert(std::is_same_v<typename Tile::Element, typename There::Element>,
                "reduce: a bulk reduction combines elements of one type");
  bulk_reduce_cluster<Op, typename Tile::Element>(
      to.space.base_address(), from.space.base_address(),
      detail::bytes_of_pieces<Tile, H, There, I>(), full, where);
}

/// A BulkCopy from global memory to the same place in each CTA of the cluster whose bit is set in
/// `ctas`; each counts the bytes at its own mbarrier.
template <L2Policy Hint = L2Hint::none> struct BulkMulticast { std::uint16_t ctas; };
template <L2Policy Hint, class T, class A, Clip C, class G, class Tile, int Moved, class H>
TEGULA_DEVICE void copy(BulkMulticast<Hint> by, Tensor<Global<T, A, C>, G> const& from,
                        Tensor<Shared<Tile, Mode<>, CopyOp::universal, Moved>, H> const& to,
                        SharedAddr full, SourceLocation where = SourceLocation::current()) {
  detail::check_piece<T, A, C, G, Tile, H>(from, where);
  bulk_load_multicast<Hint>(to.space.base_address(), from.at(where, 0),
                            detail::SharedPiece<Tile, H>::bytes, full, by.ctas, where);
}

}  // namespace tegula
