#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "tegula/macros.hpp"

/// What an access to global memory tells the caches: PTX ISA, "Cache Operators", "Cache Eviction
/// Priority Hints", ld, st, createpolicy. A hint never changes what is read or written. The
/// simulated machine has no caches, and ignores all of them.
namespace tegula {

/// How likely L2 is to drop what an instruction moves, beside what others move.
enum class L2Hint : std::uint8_t { none, evict_first, evict_last, evict_normal, evict_unchanged };

/// A cache policy of L2: `primary` holds for `sixteenths` sixteenths of the accesses, and for the
/// others evict_unchanged, or evict_first with `rest_first` (PTX ISA, createpolicy.fractional).
struct L2Policy {
  L2Hint primary = L2Hint::none;
  int sixteenths = 16;  ///< 1 to 16
  bool rest_first = false;

  TEGULA_HOST_DEVICE constexpr L2Policy() {}
  TEGULA_HOST_DEVICE constexpr L2Policy(L2Hint hint, int sixteenths = 16, bool rest_first = false)
      : primary(hint), sixteenths(sixteenths), rest_first(rest_first) {}
  friend constexpr bool operator==(L2Policy const&, L2Policy const&) = default;
};

/// The operand that says so, 0 for none: the number that ptxas 13.0 makes of
/// createpolicy.fractional for sm_80, and that its code computes on sm_90 and sm_100. A constant
/// costs less than that code does.
constexpr std::uint64_t cache_policy(L2Policy const& policy) {
  constexpr unsigned priorities[] = {0, 2, 4, 6, 0};  // by L2Hint
  if (policy.primary == L2Hint::none) return 0;
  unsigned const top = 0x100u | (priorities[static_cast<int>(policy.primary)] << 4) |
                       (policy.rest_first ? 0x10u : 0u) |
                       static_cast<unsigned>(policy.sixteenths - 1);
  return static_cast<std::uint64_t>(top) << 52;
}

/// Where a line may be kept, by a name of PTX: `wb` and `wt` are of stores, `ca`, `lu` and `cv` of
/// loads, `cg` and `cs` of both.
enum class CacheOperator : std::uint8_t { none, ca, cg, cs, lu, cv, wb, wt };
/// In which order L1 drops what is accessed.
enum class L1Eviction : std::uint8_t {
  none,
  evict_normal,
  evict_unchanged,
  evict_first,
  evict_last,
  no_allocate
};
/// How many bytes L2 fetches where a load misses.
enum class L2Prefetch : std::uint8_t { none, b64, b128, b256 };

/// All that one access may say, as a template argument: a cache operator or a priority in L1, not
/// both; a policy of L2; of a load, what L2 fetches.
struct CacheHint {
  CacheOperator op = CacheOperator::none;
  L1Eviction l1 = L1Eviction::none;
  L2Policy l2 = {};
  L2Prefetch prefetch = L2Prefetch::none;

  friend constexpr bool operator==(CacheHint const&, CacheHint const&) = default;
};

namespace detail {

constexpr bool is_one_of(CacheOperator) { return false; }
template <class... More>
constexpr bool is_one_of(CacheOperator op, CacheOperator first, More... more) {
  return op == first || is_one_of(op, more...);
}

/// The accesses that take hints.
enum class Hinted : std::uint8_t { ld, ld_nc, st, cp_async };

/// Refuses what is no policy, in a sentence.
template <L2Policy P> struct PolicyChecked {
  static_assert(
      P.sixteenths >= 1 && P.sixteenths <= 16,
      "L2Policy: sixteenths is 1 to 16: the part of the accesses that the primary priority is of");
  static_assert(
      P.primary != L2Hint::none || P == L2Policy{},
      "L2Policy: a part of the accesses needs a primary priority: evict_first, evict_last, "
      "evict_normal or evict_unchanged");
  static constexpr bool value = true;
};

/// Refuses what PTX does not have, in a sentence.
template <CacheHint H, Hinted I> struct HintChecked {
  using Op = CacheOperator;
  static_assert(
      H.op == Op::none || H.l1 == L1Eviction::none,
      "CacheHint: an access takes a cache operator (op) or a priority in L1 (l1), not both");
  static_assert(PolicyChecked<H.l2>::value);
  static_assert(I != Hinted::ld ||
                    is_one_of(H.op, Op::none, Op::ca, Op::cg, Op::cs, Op::lu, Op::cv),
                "CacheHint: ld.global takes the cache operators ca, cg, cs, lu and cv");
  static_assert(I != Hinted::ld_nc || is_one_of(H.op, Op::none, Op::ca, Op::cg, Op::cs),
                "CacheHint: ld.global.nc takes the cache operators ca, cg and cs");
  static_assert(I != Hinted::st || is_one_of(H.op, Op::none, Op::wb, Op::cg, Op::cs, Op::wt),
                "CacheHint: st.global takes the cache operators wb, cg, cs and wt");
  static_assert(I != Hinted::st || H.prefetch == L2Prefetch::none,
                "CacheHint: st.global fetches nothing into L2: prefetch is of loads");
  static_assert(
      I != Hinted::cp_async || (H.op == Op::none && H.l1 == L1Eviction::none),
      "CacheHint: cp.async takes a policy of L2 (l2) and what L2 fetches (prefetch); cp_async_ca "
      "and cp_async_cg name its cache operator");
  static constexpr bool value = true;
};

#if TEGULA_GPU
/// Characters that are put together at compile time.
struct Spelling {
  char c[96] = {};
  int count = 0;

  constexpr void add(char const* text) {
    for (; *text != 0; ++text) c[count++] = *text;
  }
};

constexpr Spelling spell_qualifiers(CacheHint const& h, bool read_only) {
  constexpr char const* ops[] = {"", ".ca", ".cg", ".cs", ".lu", ".cv", ".wb", ".wt"};
  constexpr char const* priorities[] = {"",
                                        ".L1::evict_normal",
                                        ".L1::evict_unchanged",
                                        ".L1::evict_first",
                                        ".L1::evict_last",
                                        ".L1::no_allocate"};
  constexpr char const* fetches[] = {"", ".L2::64B", ".L2::128B", ".L2::256B"};
  Spelling s;
  s.add(ops[static_cast<int>(h.op)]);
  if (read_only) s.add(".nc");
  s.add(priorities[static_cast<int>(h.l1)]);
  if (h.l2.primary != L2Hint::none) s.add(".L2::cache_hint");
  s.add(fetches[static_cast<int>(h.prefetch)]);
  return s;
}

/// ", 0x12f0000000000000"; nothing where there is no policy.
constexpr Spelling spell_policy(L2Policy const& policy) {
  Spelling s;
  if (policy.primary == L2Hint::none) return s;
  s.add(", 0x");
  for (int digit = 15; digit >= 0; --digit)
    s.c[s.count++] = "0123456789abcdef"[cache_policy(policy) >> (4 * digit) & 15];
  return s;
}

template <CacheHint H, bool ReadOnly> struct QualifiersSource {
  static constexpr Spelling value = spell_qualifiers(H, ReadOnly);
};
template <L2Policy P> struct PolicySource { static constexpr Spelling value = spell_policy(P); };

/// The characters as an array, which is what an assembler statement takes.
template <class Source, class Numbers = std::make_index_sequence<Source::value.count>>
struct SpelledText;
template <class Source, std::size_t... I> struct SpelledText<Source, std::index_sequence<I...>> {
  static constexpr char text[] = {Source::value.c[I]..., 0};
};

template <CacheHint H, bool ReadOnly = false>
using HintQualifiers = SpelledText<QualifiersSource<H, ReadOnly>>;
template <L2Policy P> using PolicyOperand = SpelledText<PolicySource<P>>;
/// ".L2::cache_hint", where there is a policy.
template <L2Policy P>
using PolicyQualifier = SpelledText<QualifiersSource<CacheHint{.l2 = P}, false>>;
#endif

}  // namespace detail

}  // namespace tegula
