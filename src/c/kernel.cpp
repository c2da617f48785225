// Kernels of the caller's own.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "guard.hpp"
#include "host_array.hpp"
#include "machine.hpp"
#include "structures.hpp"
#include "tegula/device/user_kernel.hpp"
#include "tegula/io/text.hpp"

struct tegula_kernel {
  tegula_machine* machine;
  std::string name;
  tegula::UserKernel held;
};

namespace tegula::c {
namespace {

static_assert(static_cast<int>(MemberKind::pointer) == TEGULA_MEMBER_POINTER &&
              static_cast<int>(MemberKind::other) == TEGULA_MEMBER_OTHER);

constexpr tegula_kernel_source kKernelDefaults = {};

KernelSource source_of(tegula_kernel_source const& given) {
  not_null("tegula_kernel_create", "text", given.text);
  not_null("tegula_kernel_create", "type", given.type);
  KernelSource source{.text = given.text,
                      .type = given.type,
                      .file = given.file != nullptr ? given.file : given.type};
  counted("tegula_kernel_create", "include", given.include, "include_count", given.include_count);
  for (std::int32_t i = 0; i < given.include_count; ++i) {
    not_null("tegula_kernel_create", "a folder of include", given.include[i]);
    source.include.emplace_back(given.include[i]);
  }
  return source;
}

/// The caller's arrays, whose pointers are in the parameters.
std::vector<BytesOnMachine::Bytes> arrays_of(std::vector<std::byte> const& params,
                                             tegula_kernel_array const* arrays,
                                             std::int32_t count) {
  std::vector<BytesOnMachine::Bytes> all;
  for (std::int32_t i = 0; i < count; ++i) {
    tegula_kernel_array const& array = arrays[i];
    if (array.offset > params.size() || params.size() - array.offset < sizeof(void*))
      throw argument_error(fmt::format(
          "tegula_kernel_launch: the offset of array {} is {}, and the parameters have {}; a "
          "pointer must lie in them.",
          i, array.offset, io::counted(params.size(), "byte")));
    if (array.bytes < 0)
      throw argument_error(
          fmt::format("tegula_kernel_launch: array {} has {}; it must have at least 0.", i,
                      io::counted(array.bytes, "byte")));
    void* pointer = nullptr;
    std::memcpy(&pointer, params.data() + array.offset, sizeof pointer);
    all.push_back({.name = array.name != nullptr ? array.name : "array",
                   .address = pointer,
                   .count = array.bytes,
                   .is_constant = array.is_constant != 0});
  }
  return all;
}

void simulate(tegula_kernel const& kernel, Dim3 grid, std::vector<std::byte> params,
              tegula_kernel_array const* arrays, std::int32_t count, tegula_report** report) {
  BytesOnMachine const operands(kernel.machine->machine, arrays_of(params, arrays, count));
  for (std::int32_t i = 0; i < count; ++i) {
    void* const pointer = operands.data(static_cast<std::size_t>(i));
    std::memcpy(params.data() + arrays[i].offset, &pointer, sizeof pointer);
  }
  std::scoped_lock const lock(kernel.machine->launching);
  std::optional<sim::Report> found;
  try {
    found = kernel.held(grid, params.data());
  } catch (sim::CheckError const& error) {
    operands.download();
    if (report == nullptr) throw;
    found = error.report();
  }
  operands.download();
  if (report != nullptr) *report = new tegula_report{std::move(*found)};
}

}  // namespace
}  // namespace tegula::c

using namespace tegula;
using namespace tegula::c;

void tegula_kernel_source_init(tegula_kernel_source* source, size_t struct_size) {
  initialise(source, struct_size, kKernelDefaults);
}

tegula_status tegula_kernel_create(tegula_machine* machine, tegula_kernel_source const* source,
                                   tegula_kernel** kernel) {
  return guarded([&] {
    not_null("tegula_kernel_create", "machine", machine);
    not_null("tegula_kernel_create", "source", source);
    not_null("tegula_kernel_create", "kernel", kernel);
    Use const use(*machine);
    KernelSource const given =
        source_of(read_structure("tegula_kernel_create", *source, kKernelDefaults));
    *kernel = new tegula_kernel{machine, given.type, UserKernel(machine->machine, given)};
  });
}

void tegula_kernel_free(tegula_kernel* kernel) { delete kernel; }

int32_t tegula_kernel_threads(tegula_kernel const* kernel) {
  return kernel == nullptr ? 0 : kernel->held.threads();
}

int64_t tegula_kernel_params_bytes(tegula_kernel const* kernel) {
  return kernel == nullptr ? 0 : static_cast<int64_t>(kernel->held.params_bytes());
}

int32_t tegula_kernel_members(tegula_kernel const* kernel, tegula_kernel_member* members,
                              int32_t room) {
  if (kernel == nullptr || !kernel->held.members()) return -1;
  auto const& all = *kernel->held.members();
  auto const count = static_cast<std::int32_t>(all.size());
  for (std::int32_t i = 0; members != nullptr && i < std::min(room, count); ++i) {
    ParamsMember const& member = all[static_cast<std::size_t>(i)];
    members[i] = {member.offset, member.bytes, static_cast<tegula_member_kind>(member.kind)};
  }
  return count;
}

tegula_status tegula_kernel_launch(tegula_kernel const* kernel, int32_t const grid[3],
                                   void const* params, size_t params_bytes,
                                   tegula_kernel_array const* arrays, int32_t array_count,
                                   void* stream, tegula_report** report) {
  return guarded([&] {
    not_null("tegula_kernel_launch", "kernel", kernel);
    not_null("tegula_kernel_launch", "grid", grid);
    not_null("tegula_kernel_launch", "params", params);
    counted("tegula_kernel_launch", "arrays", arrays, "array_count", array_count);
    if (params_bytes != kernel->held.params_bytes())
      throw argument_error(fmt::format(
          "{}: the parameters have {}; its Params have {}, and they must be those.", kernel->name,
          io::counted(params_bytes, "byte"), kernel->held.params_bytes()));
    Use const use(*kernel->machine);
    Dim3 const extents = {grid[0], grid[1], grid[2]};
    if (extents.x < 1 || extents.y < 1 || extents.z < 1)
      throw argument_error(
          fmt::format("{}: the grid is {} x {} x {}; it must be at least 1 x 1 x 1.", kernel->name,
                      extents.x, extents.y, extents.z));
    std::vector<std::byte> copy(params_bytes);
    std::memcpy(copy.data(), params, params_bytes);
    if (kernel->machine->machine.is_simulated()) {
      simulate(*kernel, extents, copy, arrays, array_count, report);
    } else {
      kernel->held(extents, copy.data(), Stream{stream});
      if (report != nullptr) *report = nullptr;
    }
  });
}
