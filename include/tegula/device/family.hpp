#pragma once

/// The families of kernels (kernel/configurations.hpp): their configurations by number, and what
/// the kernels of these need.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "tegula/device/properties.hpp"
#include "tegula/kernel/configurations.hpp"

namespace tegula {

/// A family of the list, where its type is not known before run time: `FamilyId chosen
/// = gemm_sm90`.
class FamilyId {
 public:
  template <KernelFamily F>
  requires(Families::has<F>) constexpr FamilyId(F) : index_(Families::index_of<F>) {}

  /// The place in the list.
  constexpr int index() const { return index_; }
  /// visit(family), with the family's own type.
  template <class Visit> constexpr void visit(Visit&& visit) const { Families::at(index_, visit); }

  friend constexpr auto operator<=>(FamilyId, FamilyId) = default;

 private:
  std::int8_t index_;
};

/// "gemm_sm90"
constexpr char const* to_string(FamilyId family) {
  char const* name = nullptr;
  family.visit([&](auto f) { name = f.name; });
  return name;
}

namespace device {

struct ConfigurationTable {
  void const* first;  ///< of the family's Config
  std::size_t count;
};
/// Those that are built, or all.
ConfigurationTable configurations(FamilyId family, Kernels kernels);

/// Whether this build has the kernel. Precondition: check_configuration has passed.
bool is_built(FamilyId family, int number);

/// `config` is one of the family's Config.
std::string name_of(FamilyId family, void const* config);

/// Throws argument_error for a number that the family's table does not have.
void check_configuration(FamilyId family, int number);

}  // namespace device

/// The configurations of a family whose kernels this build has, or with Kernels::all its whole
/// table, which begins with these. A configuration is named by its number: its place here.
template <KernelFamily F>
std::span<typename F::Config const> configurations(F family, Kernels kernels = Kernels::built) {
  auto const [first, count] = device::configurations(family, kernels);
  return {static_cast<typename F::Config const*>(first), count};
}

/// One of them. Throws argument_error for a number that there is not.
template <KernelFamily F> typename F::Config const& configuration(F family, int number) {
  device::check_configuration(family, number);
  return configurations(family, Kernels::all)[static_cast<std::size_t>(number)];
}

/// A configuration in a line, with every field that tells those of its family's table apart:
/// "attention_sm80 f16 d64 128x64 4 warps 2 stages causal ex2_approx",
/// "gemm_sm80 f16->f32 A:k B:mn 128x128x32 2x2 warps 3 stages 16-byte",
/// "gemm_sm90 bf16->f32 A:k B:k 128x256x64 cooperative cluster 2x1 4 stages".
template <FamilyConfig C> std::string to_string(C const& config) {
  return device::name_of(FamilyOf<C>{}, &config);
}

/// The same of a number. Throws as `configuration`.
std::string configuration_name(FamilyId family, int number);

/// What a configuration's kernel needs.
struct KernelResources {
  int threads = 0;               ///< of a CTA
  std::size_t shared_bytes = 0;  ///< of a CTA
};
/// Throws as `configuration`.
KernelResources resources(FamilyId family, int number);

}  // namespace tegula
