#include "checker/launch_tensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "tegula/io/text.hpp"
#include "tegula/layout/text.hpp"
#include "values/global_tensor.hpp"
#include "values/place.hpp"

namespace tegula::sim {

namespace {

/// Throws where the description is none.
void check(std::string const& kernel, GlobalTensor const& tensor) {
  auto const refuse = [&](std::string const& why) {
    throw std::invalid_argument(fmt::format("launch of {}: {}", kernel, why));
  };
  if (tensor.name.empty()) refuse("a tensor is described without a name; findings need one");
  if (tensor.element_bits < 8 || tensor.element_bits % 8 != 0)
    refuse(fmt::format("{} has elements of {}; they must have a multiple of 8", tensor.name,
                       io::counted(tensor.element_bits, "bit")));
  std::string const layout =
      fmt::format("{} has the layout {}", tensor.name, to_string(tensor.layout));
  if (tensor.layout.has_axes()) refuse(layout + ", of coordinates; its strides must be integers");
  auto const modes =
      static_cast<std::size_t>(tensor.layout.leaves() == 0 ? 0 : tensor.layout.rank());
  if (modes == 0 || modes != tensor.modes.size())
    refuse(fmt::format(
        "{}, of {}, and names for {}; it must have at least one mode, and a name for each", layout,
        io::counted(modes, "mode"), tensor.modes.size()));
  if (std::any_of(tensor.modes.begin(), tensor.modes.end(),
                  [](auto const& mode) { return mode.empty(); }))
    refuse(fmt::format("a mode of {} has an empty name; findings need one", tensor.name));
}

/// The marks of a tensor's elements.
class Marks {
 public:
  Marks(GlobalTensor const& tensor, Allocation const& memory)
      : layout_(tensor.layout),
        bytes_(static_cast<std::size_t>(element_bytes(tensor))),
        marks_((tensor.coverage == Coverage::read ? memory.read : memory.written) +
               (static_cast<unsigned char const*>(tensor.address) - memory.base)) {}

  bool set(std::int64_t index) const { return all_set(layout_(index), 1); }
  /// Whether all are, in the order of addresses.
  bool all_set() const {
    struct Leaf {
      std::int64_t extent, stride;
    };
    std::vector<Leaf> leaves;
    for (int i = 0; i < layout_.leaves(); ++i) {
      if (layout_.extents[i] > 1 && layout_.strides[i] != 0)
        leaves.push_back({layout_.extents[i], std::abs(layout_.strides[i])});
    }
    std::sort(leaves.begin(), leaves.end(), [](Leaf a, Leaf b) { return a.stride < b.stride; });
    std::int64_t run = 1;
    std::size_t first = 0;  // of the leaves beyond a run without gaps
    while (first < leaves.size() && leaves[first].stride == run) run *= leaves[first++].extent;
    std::array<std::int64_t, kMaxLeaves> digits{};
    for (std::int64_t offset = offsets_of(layout_).least;;) {
      if (!all_set(offset, run)) return false;
      std::size_t i = first;
      for (; i < leaves.size(); ++i) {
        offset += leaves[i].stride;
        if (++digits[i] < leaves[i].extent) break;
        offset -= digits[i] * leaves[i].stride;
        digits[i] = 0;
      }
      if (i == leaves.size()) return true;
    }
  }

 private:
  bool all_set(std::int64_t offset, std::int64_t count) const {
    return std::memchr(marks_ + offset * static_cast<std::int64_t>(bytes_), 0,
                       bytes_ * static_cast<std::size_t>(count)) == nullptr;
  }

  Layout const& layout_;
  std::size_t bytes_;
  std::uint8_t const* marks_;
};

/// The first access of the launch to a byte that reads it, or that writes it.
struct Touch {
  GlobalSite const* site;
  GlobalRows const* rows;
  std::int64_t cluster;
};
std::optional<Touch> first_touch(std::map<std::int64_t, ClusterLog> const& logs, void const* byte,
                                 bool read) {
  auto const address = reinterpret_cast<std::uintptr_t>(byte);
  for (auto const& [cluster, log] : logs) {
    for (GlobalRows const& rows : log.rows) {
      std::uintptr_t const distance = address - rows.begin;
      bool const inside =
          rows.pitch == 0 || rows.count == 1
              ? distance < rows.bytes
              : distance / rows.pitch < rows.count && distance % rows.pitch < rows.bytes;
      GlobalSite const& site = log.sites[rows.site];
      if (inside && site.access != (read ? GlobalAccess::write : GlobalAccess::read))
        return Touch{&site, &rows, cluster};
    }
  }
  return std::nullopt;
}

/// An element beside the one with the index `first` that is covered, and who touched it: something
/// stops short there. Neighbours in memory come first.
template <class TouchOf>
std::optional<std::pair<std::int64_t, Touch>> covered_beside(
    Marks const& marks, Layout const& layout, std::vector<std::int64_t> const& coordinate,
    std::int64_t first, TouchOf&& touch_of) {
  struct Mode {
    std::int64_t at, extent, step, stride;  ///< step: in the index
  };
  std::vector<Mode> modes;
  std::int64_t step = 1;
  for (int mode = 0; mode < layout.rank(); ++mode) {
    std::int64_t const extent = layout[mode].size();
    modes.push_back(
        {coordinate[static_cast<std::size_t>(mode)], extent, step, std::abs(layout(step))});
    step *= extent;
  }
  std::stable_sort(modes.begin(), modes.end(),
                   [](Mode const& a, Mode const& b) { return a.stride < b.stride; });
  for (Mode const& mode : modes) {
    for (int const way : {-1, 1}) {
      std::int64_t const index = first + way * mode.step;
      if (mode.at + way < 0 || mode.at + way >= mode.extent || !marks.set(index)) continue;
      if (std::optional<Touch> const touch = touch_of(index)) return std::pair(index, *touch);
    }
  }
  return std::nullopt;
}

}  // namespace

Allocation* allocation_of(AllocationTable const& table, GlobalTensor const& tensor) {
  OffsetRange const range = offsets_of(tensor.layout);
  std::int64_t const bytes = element_bytes(tensor);
  Allocation* const memory = find(table, tensor.address);
  if (memory == nullptr) return nullptr;
  auto const before = static_cast<std::int64_t>(memory->offset_of(tensor.address));
  auto const after = static_cast<std::int64_t>(memory->bytes) - before;
  return -range.least <= before / bytes && range.greatest < after / bytes ? memory : nullptr;
}

void LaunchTensors::Free::operator()(void* memory) const { std::free(memory); }

LaunchTensors::LaunchTensors(KernelImage const& kernel, AllocationTable const& table, bool checks) {
  std::vector<Allocation*> memories;
  for (GlobalTensor const& tensor : kernel.tensors) {
    check(kernel.name, tensor);
    memories.push_back(allocation_of(table, tensor));
    if (memories.back() == nullptr) {
      Allocation const* const begins = find(table, tensor.address);
      throw std::invalid_argument(fmt::format(
          "launch of {}: {}, of layout {} and elements of {}, {}", kernel.name, tensor.name,
          to_string(tensor.layout), io::counted(element_bytes(tensor), "byte"),
          begins == nullptr
              ? fmt::format("is at {}, in no allocation of this machine", tensor.address)
              : fmt::format("at byte {} of {}, does not lie in its {}",
                            begins->offset_of(tensor.address), begins->name,
                            io::counted(begins->bytes, "byte"))));
    }
  }
  for (std::size_t i = 0; i < memories.size(); ++i) {
    GlobalTensor const& tensor = kernel.tensors[i];
    Allocation* const memory = memories[i];
    if (memory->tensors.empty()) described_.push_back(memory);
    memory->tensors.push_back(&tensor);
    if (!checks || tensor.coverage == Coverage::any) continue;
    covered_.push_back({&tensor, memory});
    std::uint8_t*& marks = tensor.coverage == Coverage::read ? memory->read : memory->written;
    if (marks != nullptr) continue;
    marks_.emplace_back(static_cast<std::uint8_t*>(std::calloc(memory->bytes, 1)));
    if (marks_.back() == nullptr) throw std::bad_alloc();
    marks = marks_.back().get();
  }
}

LaunchTensors::~LaunchTensors() {
  for (Allocation* const memory : described_) {
    memory->tensors.clear();
    memory->read = memory->written = nullptr;
  }
}

std::vector<Finding> LaunchTensors::not_covered(
    std::map<std::int64_t, ClusterLog> const& logs,
    std::function<Dim3(std::int64_t, int)> const& cta_of) const {
  std::vector<Finding> findings;
  for (Covered const& covered : covered_) {
    GlobalTensor const* const tensor = covered.tensor;
    Allocation const* const memory = covered.memory;
    Marks const marks(*tensor, *memory);
    if (marks.all_set()) continue;
    Layout const& layout = tensor->layout;
    bool const read = tensor->coverage == Coverage::read;
    std::int64_t const size = layout.size();
    std::int64_t first = size, missing = 0;
    for (std::int64_t index = size; index-- > 0;) {
      if (marks.set(index)) continue;
      first = index;
      ++missing;
    }
    auto const address = [&](std::int64_t index) {
      return static_cast<unsigned char const*>(tensor->address) +
             layout(index) * element_bytes(*tensor);
    };
    Finding f;
    f.kind = read ? FindingKind::unread_input : FindingKind::unwritten_output;
    f.cta = {-1, -1, -1};
    f.buffer = memory->name;
    std::vector<std::int64_t> const coordinate = coordinate_of(layout, first);
    f.coordinate = memory->place(memory->offset_of(address(first)));
    std::string const elements = io::counted(size, "element");
    std::string const rest =
        missing == 1 ? "one of " + elements
        : missing == size
            ? "nor any other of its " + elements
            : fmt::format("nor {} of its {}", io::counted(missing - 1, "other"), elements);
    f.message = fmt::format("nobody {} {}, {}: the launch is to {} them all",
                            read ? "reads" : "writes", f.coordinate, rest, read ? "read" : "write");
    if (auto const beside = covered_beside(
            marks, layout, coordinate, first,
            [&](std::int64_t index) { return first_touch(logs, address(index), read); })) {
      auto const& [index, touch] = *beside;
      f.other = touch.site->where;
      f.other_cta = cta_of(touch.cluster, touch.rows->cta);
      f.other_warp = touch.rows->warp;
      f.other_lane = touch.rows->lane;
      f.message += fmt::format(
          "; {}, beside it, {} of CTA ({}, {}, {}), warp {}{} {} ({})",
          coordinate_text(*tensor, coordinate_of(layout, index)), ptx_name(touch.site->instruction),
          f.other_cta->x, f.other_cta->y, f.other_cta->z, f.other_warp,
          f.other_lane < 0 ? "" : fmt::format(", lane {}", f.other_lane),
          verb(touch.site->access, touch.site->instruction), place_text(f.other));
    }
    findings.push_back(std::move(f));
  }
  return findings;
}

}  // namespace tegula::sim
