#include "tegula/device/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>

#include "backend.hpp"
#include "tegula/device/buffer.hpp"
#include "tegula/io/text.hpp"

namespace tegula {

Machine Machine::cuda(int device) { return Machine(device::make_cuda_backend(device)); }

namespace {

void check(Arch arch) {
  if (static_cast<std::size_t>(arch) < std::size(sim::kArchSpecs)) return;
  std::string names;
  for (sim::ArchSpec const& spec : sim::kArchSpecs)
    names += fmt::format("{}Arch::sm{}", names.empty() ? "" : " or ", spec.compute_capability);
  throw argument_error(fmt::format("the simulated machine's generation is {}; it must be {}.",
                                   static_cast<int>(arch), names));
}

void check(sim::Options const& options) {
  auto const within = [](char const* name, std::int64_t value, std::int64_t least,
                         std::int64_t most) {
    if (value < least || value > most)
      throw argument_error(fmt::format(
          "the simulated machine's {} is {}; it must be from {} to {}.", name, value, least, most));
  };
  within("workers", options.workers, 0, 1024);
  within("multiprocessors", options.multiprocessors, 0, 1 << 16);
  constexpr std::int64_t kMostStack = std::int64_t{1} << 30;
  within("stack_bytes",
         static_cast<std::int64_t>(std::min<std::size_t>(options.stack_bytes, kMostStack + 1)),
         1 << 14, kMostStack);
  if (options.trace) within("trace.ctas", options.trace->ctas, 1, std::numeric_limits<int>::max());
}

}  // namespace

Machine Machine::simulated(Arch arch, sim::Options options) {
  check(arch);
  check(options);
  options.generation = arch;
  return Machine(device::make_simulated_backend(std::move(options)));
}

Machine Machine::best(Arch arch, sim::Options options) {
  if (cuda_device_count() > 0) {
    try {
      return cuda(0);
    } catch (device_error const&) {
      // A GPU that the kernels were not compiled for: the simulated machine runs them.
    }
  }
  return simulated(arch, std::move(options));
}

Machine Machine::from_name(std::string_view name, Arch arch, sim::Options options) {
  if (name == "sim") return simulated(arch, std::move(options));
  if (name == "auto") return best(arch, std::move(options));
  if (name == "cuda") return cuda(0);
  if (name.starts_with("cuda:")) {
    auto const digits = name.substr(5);
    int number = 0;
    auto const [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error == std::errc() && end == digits.data() + digits.size() && !digits.starts_with('-'))
      return cuda(number);
  }
  throw argument_error(fmt::format(
      "the machine's name is {}; it must be sim, cuda, cuda:NUMBER or auto.", io::in_quotes(name)));
}

std::string Machine::name() const { return backend_->name(); }
DeviceProperties Machine::properties() const { return backend_->properties(); }
int Machine::compute_capability() const { return properties().compute_capability; }
int Machine::multiprocessors() const { return properties().multiprocessors; }
sim::Machine* Machine::simulation() const { return backend_->simulation(); }
std::optional<sim::Report> Machine::last_report() const { return backend_->last_report(); }
void Machine::synchronize(Stream stream) const { backend_->synchronize(stream); }

OwnedStream Machine::create_stream() const {
  return OwnedStream({backend_->create_stream(),
                      [backend = backend_](void* stream) { backend->destroy_stream(stream); }});
}

Event Machine::create_event() const {
  return Event(backend_, {backend_->create_event(),
                          [backend = backend_](void* event) { backend->destroy_event(event); }});
}

void Event::record(Stream stream) { backend_->record(handle_.get(), stream); }
float milliseconds(Event const& begin, Event const& end) {
  return begin.backend_->milliseconds(begin.handle_.get(), end.handle_.get());
}

device::LoadedUserKernel device::Backend::load(CompiledKernel const& compiled) {
  throw device_error(fmt::format(
      "{} is a kernel of the user's own, and {} launches built kernels only; build without nvcc to "
      "have them compiled when they are first used.",
      compiled.name, name()));
}

int cuda_device_count() { return device::cuda_device_count(); }
std::string_view cuda_architectures() { return device::cuda_architectures(); }

Allocation::Allocation(Machine const& machine, std::int64_t bytes, std::string name)
    : backend_(machine.shared_backend()), bytes_(bytes), name_(std::move(name)) {
  if (bytes < 0)
    throw argument_error(fmt::format("Allocation: {} would have {}; a size is at least 0.", name_,
                                     io::counted(bytes, "byte")));
  if (bytes == 0) return;
  data_ = {backend_->allocate(static_cast<std::size_t>(bytes), name_),
           [backend = backend_](void* pointer) { backend->release(pointer); }};
}

void Allocation::check_range(char const* operation, std::int64_t bytes, std::int64_t offset) const {
  if (offset < 0 || bytes < 0 || offset > bytes_ || bytes > bytes_ - offset)
    throw argument_error(fmt::format("{}: {} at offset {} would not lie in {}, which has {}.",
                                     operation, io::counted(bytes, "byte"), offset, name_, bytes_));
}

namespace {
void check_host_memory(char const* operation, void const* memory, std::int64_t bytes,
                       std::string const& name) {
  if (bytes > 0 && memory == nullptr)
    throw argument_error(
        fmt::format("{}: the host's pointer is null, for {} of {}; it must point to as many.",
                    operation, io::counted(bytes, "byte"), name));
}
}  // namespace

void Allocation::upload(void const* from, std::int64_t bytes, std::int64_t offset) {
  check_range("upload", bytes, offset);
  check_host_memory("upload", from, bytes, name_);
  if (bytes > 0)
    backend_->upload(static_cast<std::byte*>(data()) + offset, from,
                     static_cast<std::size_t>(bytes));
}

void Allocation::download(void* to, std::int64_t bytes, std::int64_t offset) const {
  check_range("download", bytes, offset);
  check_host_memory("download", to, bytes, name_);
  if (bytes > 0)
    backend_->download(to, static_cast<std::byte const*>(data()) + offset,
                       static_cast<std::size_t>(bytes));
}

void Allocation::fill(std::uint8_t byte) {
  if (bytes_ > 0) backend_->fill(data(), byte, static_cast<std::size_t>(bytes_));
}

}  // namespace tegula
