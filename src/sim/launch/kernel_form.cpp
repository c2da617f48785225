// A launch of a kernel that is free of its type, and where the elements of its buffers are.

#include <memory>
#include <new>
#include <utility>

#include "tegula/sim/launch.hpp"

namespace tegula::sim::detail {

std::string coordinate_text(std::int64_t index, std::int64_t const* extents, int rank) {
  if (rank == 1) return "element " + std::to_string(index);
  char const* const names[] = {"row ", "column ", "stage "};
  std::string text;
  for (int mode = 0; mode < rank; ++mode) {
    if (mode > 0) text += rank == 3 && mode == 2 ? " of " : ", ";
    text += rank <= 3 ? names[mode] : "mode " + std::to_string(mode) + " at ";
    text += std::to_string(index % extents[mode]);
    index /= extents[mode];
  }
  return text;
}

std::vector<std::int64_t> indices_by_offset(TileLayout const& layout) {
  std::vector<std::int64_t> inverse;
  for (std::int64_t i = 0; i < layout.size; ++i) {
    auto const offset = static_cast<std::size_t>(layout.offset(i));
    if (offset >= inverse.size()) inverse.resize(offset + 1, -1);
    inverse[offset] = i;
  }
  return inverse;
}

std::string locate(std::int64_t offset, TileLayout const& layout,
                   std::vector<std::int64_t> const& indices) {
  auto const at = static_cast<std::size_t>(offset);
  if (offset >= 0 && at < indices.size() && indices[at] >= 0)
    return coordinate_text(indices[at], layout.extents, layout.rank);
  return "element " + std::to_string(offset) + ", which the layout does not use,";
}

void BufferNames::add(char const* name, void const* tile, std::size_t bytes, int element_bits,
                      std::string (*locate)(std::int64_t)) {
  auto const offset = static_cast<char const*>(tile) - static_cast<char const*>(storage_);
  buffers_.push_back({name, static_cast<std::size_t>(offset), bytes, element_bits, locate});
}

Report launch(Machine& machine, KernelForm const& form, Dim3 grid, void const* params,
              std::vector<GlobalTensor> tensors) {
  KernelImage image;
  image.name = form.name;
  image.threads = form.threads;
  image.shared_bytes = form.shared_bytes;
  image.tensors = std::move(tensors);
  if (form.tensors != nullptr) {
    for (GlobalTensor& tensor : form.tensors(params)) image.tensors.push_back(std::move(tensor));
  }
  if (form.name_buffers != nullptr) {
    std::align_val_t const alignment{form.storage_alignment};
    auto const free = [=](void* storage) { ::operator delete(storage, alignment); };
    std::unique_ptr<void, decltype(free)> const storage(
        ::operator new(form.storage_bytes, alignment), free);
    BufferNames names(storage.get(), image.buffers);
    form.name_buffers(storage.get(), names);
  }
  image.cluster = form.cluster;
  image.min_ctas_per_sm = form.min_ctas_per_sm;
  image.programmatic_dependent_launch = form.programmatic_dependent_launch;
  image.cooperative = form.cooperative;
  image.concurrent = form.concurrent;
  image.cluster_launch_control = form.cluster_launch_control;
  image.limits = form.limits;
  image.params = {params, form.params_bytes};
  image.role = form.role;
  image.run = [&form, params](void* storage) { form.run(params, storage); };
  return machine.launch(image, grid);
}

}  // namespace tegula::sim::detail
