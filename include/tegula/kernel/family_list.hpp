#pragma once

#include <concepts>
#include <type_traits>

/// Families of kernels as types: kernel/configurations.hpp has them, and their one list.
namespace tegula {

/// A family of kernels is a struct without members of an object, with
///
///     name                           "gemm_sm90": the kernel is in kernel/NAME.hpp, a value of
///                                    that name stands for the family
///     Config, Params                 what a kernel of it is made from, and launched with
///     Kernel<config>                 the kernel of a configuration
///     table                          its configurations
///     is_representative(config)      whether every build has the configuration, also a quick one
///                                    (TEGULA_CONFIGURATIONS=representative)
template <class F>
concept KernelFamily = std::is_empty_v<F> && requires(typename F::Config const& config) {
  typename F::Params;
  { F::name } -> std::convertible_to<char const*>;
  { F::table[0] } -> std::convertible_to<typename F::Config>;
  { F::is_representative(config) } -> std::same_as<bool>;
};

/// What iterates over families does so by this.
template <KernelFamily... F> struct FamilyList {
  static constexpr int size = sizeof...(F);
  template <class G> static constexpr bool has = (std::same_as<F, G> || ...);

  /// The place of a family in the list.
  template <class G>
  requires has<G>
  static constexpr int index_of = [] {
    int before = 0;
    static_cast<void>(((std::same_as<F, G> || (++before, false)) || ...));
    return before;
  }();

  /// visit(family) for each, in the order of the list.
  template <class Visit> static constexpr void for_each(Visit&& visit) { (visit(F{}), ...); }
  /// The same from the last to the first: of families that compute the same, a later one
  /// is preferred.
  template <class Visit> static constexpr void for_each_from_last(Visit&& visit) {
    for (int i = size - 1; i >= 0; --i) at(i, visit);
  }
  /// visit(family) for the one at `index`.
  template <class Visit> static constexpr void at(int index, Visit&& visit) {
    static_cast<void>(((index_of<F> == index && (visit(F{}), true)) || ...));
  }
};

namespace detail {
template <class Config, class List> struct FamilyOfConfig {};
template <class Config, class F, class... Others>
struct FamilyOfConfig<Config, FamilyList<F, Others...>>
    : std::conditional_t<std::same_as<Config, typename F::Config>, std::type_identity<F>,
                         FamilyOfConfig<Config, FamilyList<Others...>>> {};
}  // namespace detail

}  // namespace tegula
