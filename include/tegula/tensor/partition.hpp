#pragma once

#include <type_traits>
#include <utility>

#include "tegula/arch/source_location.hpp"
#include "tegula/tensor/held.hpp"
#include "tegula/tensor/tensor.hpp"

/// Sharing a tensor out by a layout of threads. (CuTe: local_partition.)
namespace tegula {

/// Stands for a mode of the threads' layout along which a tensor is not shared.
inline constexpr int X = -1;

namespace detail {

/// thread -> the coordinate of its first element, in the tensor's modes.
constexpr Layout first_of_thread(Layout const& threads, Tuple const& modes) {
  Layout const inverse = right_inverse(threads);
  if (inverse.size() != threads.size())
    refuse("local_partition", "the layout of threads must number them 0, 1, 2, ... each once",
           threads);
  Layout result = composition(identity_layout(threads.shape()), inverse);
  for (int i = 0; i < result.count; ++i) {
    int axis = -1;
    for (int k = 0; k < modes.count; ++k) {
      if (result.axes[i] != 0 && modes.values[k] == result.axes[i] - 1) axis = k;
    }
    result.axes[i] = axis + 1;
    if (axis < 0) result.strides[i] = 0;
  }
  return make_layout(group(result, 0, result.rank()));
}

/// Which elements the first thread has: every so many, along each mode.
constexpr Layout values_of_thread(Layout const& threads, Tuple const& modes, Layout const& tensor) {
  Layout result;
  for (int k = 0; k < modes.count; ++k) {
    std::int64_t const share =
        modes.values[k] < 0 ? 1 : threads[static_cast<int>(modes.values[k])].size();
    std::int64_t const extent = tensor[k].size();
    if (extent % share != 0)
      refuse("local_partition", "the threads' extent must divide the tensor's", threads, tensor,
             share);
    append_mode(result, along(k, extent == kUnbounded ? extent : extent / share, share));
  }
  wrap(result);
  return result;
}

/// Refuses a layout of threads that does not divide the tensor.
template <Layout Threads, class M, int... Modes> struct SharesChecked {
  static constexpr bool value = values_of_thread(Threads, tuple(Modes...), M::layout).count > 0;
};
template <Layout Threads, class M, int... Modes> struct LocalPartition {
  struct First {
    static constexpr Layout value = first_of_thread(Threads, tuple(Modes...));
  };
  struct Own {
    static constexpr Layout value = values_of_thread(Threads, tuple(Modes...), M::layout);
  };
  using Begins = MapOf<First>;
  using Values = MapOf<Own>;
};

/// The modes that a tensor is shared along by default.
template <Layout Threads> inline constexpr int shared_modes = Threads.rank();

template <Layout Threads, int... Modes, class Space, class M>
TEGULA_DEVICE auto partition_along(std::integer_sequence<int, Modes...>,
                                   Tensor<Space, M> const& tensor, int thread,
                                   SourceLocation where) {
  static_assert(sizeof...(Modes) <= M::rank,
                "local_partition: the tensor has fewer modes than are shared");
  // before all else: it prints sooner
  static_assert(SharesChecked<Threads, M, Modes...>::value);
  using Shares = LocalPartition<Threads, M, Modes...>;
  hold_thread<map_size<typename Shares::Begins>>("a local_partition", thread, where);
  return partition<typename Shares::Begins, typename Shares::Values, sizeof...(Modes)>(
      tensor, thread, where);
}

}  // namespace detail

/// What `thread` has of a tensor that threads share as `Threads` says, a layout from (m, n, ...) to
/// a thread: of every block as large as the layout's shape, the element at the thread's place.
/// Modes... names, for each of the tensor's first modes, the mode of Threads along which it is
/// shared; X: it is not (CuTe: Step<_1, X> leaves out a mode of the threads). By default mode i is
/// shared along mode i of Threads, as many as that has. The result has as many modes as the tensor.
/// Refused where the threads' extents do not divide the tensor's.
template <Layout Threads, int... Modes, class Space, class M>
TEGULA_DEVICE auto local_partition(Tensor<Space, M> const& tensor, int thread,
                                   SourceLocation where = SourceLocation::current()) {
  using Along = std::conditional_t<sizeof...(Modes) == 0,
                                   std::make_integer_sequence<int, detail::shared_modes<Threads>>,
                                   std::integer_sequence<int, Modes...>>;
  return detail::partition_along<Threads>(Along{}, tensor, thread, where);
}

}  // namespace tegula
