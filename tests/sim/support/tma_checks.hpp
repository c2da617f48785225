#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tma_cases.hpp"
#include "tma_kernels.hpp"

/// Runs the kernels of tma_kernels.hpp on some machine and compares with the oracle. A Host has
///   void* allocate(std::size_t)
///   void upload(void*, void const*, std::size_t), void download(...), void release(void*)
///   TensorMap encode(TensorMapDescription const&)
///   template <class Kernel> void launch(Params const&, int ctas).
namespace tegula::tma_test {

using tma_kernels::Params;
using Bytes = std::vector<unsigned char>;

/// Global memory of a host, for the length of a check.
template <class Host> class Memory {
 public:
  Memory(Host& host, std::size_t bytes) : host_(host), bytes_(bytes), data_(host.allocate(bytes)) {}
  Memory(Host& host, Bytes const& content) : Memory(host, content.size()) {
    host.upload(data_, content.data(), content.size());
  }
  ~Memory() { host_.release(data_); }
  Memory(Memory const&) = delete;
  Memory& operator=(Memory const&) = delete;

  template <class T> T* as() const { return static_cast<T*>(data_); }
  Bytes content() const {
    Bytes result(bytes_);
    host_.download(result.data(), data_, bytes_);
    return result;
  }

 private:
  Host& host_;
  std::size_t bytes_;
  void* data_;
};

/// Says where two contents differ first, and how often; empty where they do not.
inline std::string difference(Bytes const& actual, Bytes const& expected) {
  auto const [a, e] = std::mismatch(actual.begin(), actual.end(), expected.begin());
  if (a == actual.end()) return "";
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) wrong += actual[i] != expected[i];
  std::size_t const at = static_cast<std::size_t>(a - actual.begin()) / 8 * 8;
  std::uint64_t got = 0, wanted = 0;
  std::memcpy(&got, actual.data() + at, std::min<std::size_t>(8, actual.size() - at));
  std::memcpy(&wanted, expected.data() + at, std::min<std::size_t>(8, actual.size() - at));
  return fmt::format("{} of {} bytes differ; at byte {}: {:016x} instead of {:016x}", wrong,
                     actual.size(), at, got, wanted);
}

/// Calls f with a std::integral_constant of the rank.
template <class F> void with_rank(int rank, F&& f) {
  [&]<int... Rank>(std::integer_sequence<int, Rank...>) {
    ((rank == Rank + 1 ? f(std::integral_constant<int, Rank + 1>{}) : void()), ...);
  }
  (std::make_integer_sequence<int, 5>{});
}

inline Params params_of(Case const& c) {
  Params p{};
  std::copy(c.coordinate.begin(), c.coordinate.end(), p.coordinate);
  std::copy(c.offset.begin(), c.offset.end(), p.offset);
  p.shared_offset = c.shared_offset;
  p.tx_bytes = box_bytes(c.map);
  return p;
}

inline Bytes tensor_of(Case const& c) { return noise(c.tensor_bytes(), 1); }

/// With what a store may write beyond its last element.
inline Bytes tensor_to_store_to(Case const& c) {
  return noise((c.tensor_bytes() + 15) / 16 * 16, 1);
}

template <class Host> Params with_map(Host& host, Case const& c, void const* tensor) {
  Params p = params_of(c);
  TensorMapDescription map = c.map;
  map.address = tensor;
  p.map = host.encode(map);
  return p;
}

/// Loads the case's box with Kernel on `ctas` CTAs; those of `mask` in each cluster must have it.
/// What is wrong, or nothing.
template <class Kernel, class Host>
std::string check_loaded(Host& host, Case const& c, int ctas = 1, unsigned mask = 1,
                         int issuer = 0) {
  Bytes const tensor = tensor_of(c);
  Memory const in(host, tensor), out(host, Bytes(static_cast<std::size_t>(ctas * kDumpBytes))),
      arrived(host, Bytes(static_cast<std::size_t>(4 * ctas)));
  Params p = with_map(host, c, in.template as<void>());
  p.out = out.template as<std::uint32_t>();
  p.arrived = arrived.template as<std::uint32_t>();
  p.cta_mask = mask;
  p.issuer = issuer;
  host.template launch<Kernel>(p, ctas);
  Bytes const expected = expected_load(c, tensor), untouched(kDumpBytes, kUntouched),
              all = out.content();
  Bytes const flags = arrived.content();
  int cluster = 1;
  if constexpr (requires { Kernel::cluster; }) cluster = Kernel::cluster.x;
  for (int cta = 0; cta < ctas; ++cta) {
    auto const first = all.begin() + cta * kDumpBytes;
    std::string const different = difference(
        Bytes(first, first + kDumpBytes), (mask >> cta % cluster & 1) != 0 ? expected : untouched);
    if (!different.empty()) return fmt::format("{}: CTA {}: {}", c.name, cta, different);
    if (flags[static_cast<std::size_t>(4 * cta)] != 1)
      return fmt::format("{}: CTA {}: the mbarrier did not complete with {} bytes", c.name, cta,
                         p.tx_bytes);
  }
  return "";
}

template <class Host> std::string check_load(Host& host, Case const& c) {
  std::string result;
  with_rank(c.map.rank, [&](auto rank) {
    if constexpr (rank >= 3) {
      if (c.map.mode == TmaMode::im2col) {
        result = check_loaded<tma_kernels::LoadPixels<rank>>(host, c);
        return;
      }
    }
    result = check_loaded<tma_kernels::Load<rank>>(host, c);
  });
  return result;
}

/// The tensor after Kernel has stored the dump's box to it.
template <class Kernel, class Host>
Bytes stored(Host& host, Case const& c, Bytes const& tensor, Bytes const& dump) {
  Memory const out(host, tensor), in(host, dump);
  Params p = with_map(host, c, out.template as<void>());
  p.in = in.template as<std::uint32_t>();
  host.template launch<Kernel>(p, 1);
  return out.content();
}

template <class Host> std::string check_store(Host& host, Case const& c) {
  Bytes const tensor = tensor_to_store_to(c), dump = noise(kDumpBytes, 2);
  Bytes result;
  with_rank(c.map.rank,
            [&](auto rank) { result = stored<tma_kernels::Store<rank>>(host, c, tensor, dump); });
  std::string const different = difference(result, expected_store(c, tensor, dump));
  return different.empty() ? "" : c.name + ": " + different;
}

/// u32 sums with elements of the dump, which clip as a store does.
template <class Host> std::string check_add(Host& host, Case const& c) {
  Bytes const tensor = tensor_to_store_to(c), dump = noise(kDumpBytes, 5);
  Bytes const result = stored<tma_kernels::Reduce<TmaReduce::add>>(host, c, tensor, dump);
  auto const expected = [&](std::int64_t Element::*place) {
    Bytes sums = tensor;
    for (Element const& element : elements_of(c)) {
      if (element.*place < 0) continue;
      std::uint32_t a, b;
      std::memcpy(&a, tensor.data() + element.*place, 4);
      std::memcpy(&b, dump.data() + element.shared, 4);
      a += b;
      std::memcpy(sums.data() + element.*place, &a, 4);
    }
    return sums;
  };
  if (result == expected(&Element::stored)) return "";
  if (result == expected(&Element::global)) return c.name + ": clips at elements, not at 16 bytes";
  return c.name + ": " + difference(result, expected(&Element::stored));
}

/// A bulk copy of `bytes` bytes between byte `global` of an allocation and byte `shared` of the
/// dump, both ways.
template <class Host> std::string check_bulk(Host& host, int bytes, int global, int shared) {
  std::string const name = fmt::format("{} bytes between {} and {}", bytes, global, shared);
  Bytes const tensor = noise(static_cast<std::size_t>(global + bytes), 3),
              dump = noise(kDumpBytes, 4);
  Memory const memory(host, tensor), in(host, dump), out(host, Bytes(kDumpBytes)),
      arrived(host, Bytes(4));
  Params p{};
  p.shared_offset = shared;
  p.tx_bytes = p.bulk_bytes = bytes;
  p.bulk = memory.template as<unsigned char>() + global;
  p.in = in.template as<std::uint32_t>();
  p.out = out.template as<std::uint32_t>();
  p.arrived = arrived.template as<std::uint32_t>();
  host.template launch<tma_kernels::BulkLoad>(p, 1);
  Bytes loaded(kDumpBytes, kUntouched);
  std::copy_n(tensor.begin() + global, bytes, loaded.begin() + shared);
  std::string different = difference(out.content(), loaded);
  if (different.empty() && arrived.content()[0] != 1) different = "the mbarrier did not complete";
  if (!different.empty()) return name + ", load: " + different;
  host.template launch<tma_kernels::BulkStore>(p, 1);
  Bytes now = tensor;
  std::copy_n(dump.begin() + shared, bytes, now.begin() + global);
  different = difference(memory.content(), now);
  return different.empty() ? "" : name + ", store: " + different;
}

}  // namespace tegula::tma_test
