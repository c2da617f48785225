// The operands of `tegula gemm` and `tegula attention`: from files, or generated.

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "kernel_run.hpp"
#include "tegula/io/files.hpp"
#include "tegula/io/text.hpp"
#include "tegula/numeric/narrow_double.hpp"
#include "tegula/numeric/rounded_bits.hpp"

namespace tegula::tool {
namespace {

/// f(), with the option in front of what is wrong with its file.
template <class F> auto with_option(std::string const& option, F&& f) {
  try {
    return f();
  } catch (io::io_error const& error) {
    throw argument_error(fmt::format("{} {}", option, error.what()));
  }
}

}  // namespace

void add_array_file(std::vector<io::NamedPath>& paths, char const* option,
                    std::string const& name) {
  if (!name.empty())
    paths.push_back({option, with_option(option, [&] { return io::file_of_array(name); })});
}

void add_array_target(std::vector<io::NamedPath>& paths, char const* option,
                      std::string const& name) {
  add_array_file(paths, option, name);
  if (!name.empty()) with_option(option, [&] { io::check_array_target(name); });
}

DType parse_dtype(char const* option, std::string const& name, std::vector<DType> const& accepted,
                  std::string const& where) {
  for (DType const& type : accepted)
    if (name == to_string(type)) return type;
  throw argument_error(fmt::format("{} is {}; {}it must be {}.", option, io::in_quotes(name), where,
                                   list_of(accepted)));
}

std::string list_of(std::vector<std::string> const& words) {
  std::string list;
  for (std::string const& word : words)
    list += (list.empty() ? "" : &word == &words.back() ? " or " : ", ") + word;
  return list;
}

std::string list_of(std::vector<DType> const& types) {
  std::vector<std::string> names;
  for (DType const type : types) names.emplace_back(to_string(type));
  return list_of(names);
}

void Losses::count(double value, double rounded, double half_step) {
  if (std::isnan(value)) return;
  if (std::isnan(rounded))
    ++nan;
  else if (rounded == 0 && value != 0)
    ++zero;
  else if (std::isinf(value) != std::isinf(rounded) || std::abs(value - rounded) > half_step)
    ++beyond;
}

Losses& Losses::operator+=(Losses const& more) {
  beyond += more.beyond, zero += more.zero, nan += more.nan;
  return *this;
}

double half_last_step(DType type) {
  auto const value = [&](std::uint32_t code) { return reference::element(&code, type, 0); };
  // The largest in size, or infinity; numbers of one sign are in the order of their codes.
  std::uint32_t const last = rounded_bits(type, std::numeric_limits<float>::infinity());
  return std::isinf(value(last)) ? value(last) : (value(last) - value(last - 1)) / 2;
}

std::int64_t Operand::size() const {
  return static_cast<std::int64_t>(data.size()) / (bits(type) / 8);
}

namespace {

template <class T> void store(std::byte* to, T value) { std::memcpy(to, &value, sizeof value); }

/// `count` doubles value(i), rounded once to nearest even; of tf32, f32 whose last bits the
/// kernel drops.
template <class Value>
std::vector<std::byte> round_to(DType type, std::size_t count, Value&& value) {
  auto const size = static_cast<std::size_t>(bits(type) / 8);
  std::vector<std::byte> data(count * size);
  for (std::size_t i = 0; i < count; ++i) {
    double const exact = value(i);
    float const x = rounded_to_odd(exact);
    std::byte* const to = data.data() + i * size;
    if (type == DType::f16)
      store(to, to_half(x));
    else if (type == DType::bf16)
      store(to, to_bfloat16(x));
    else if (type == DType::e4m3)
      store(to, to_float_e4m3(x));
    else if (type == DType::e5m2)
      store(to, to_float_e5m2(x));
    else
      store(to, static_cast<float>(exact));
  }
  return data;
}

std::optional<DType> dtype_of_file(io::ElementType type) {
  switch (type) {
    case io::ElementType::f16:
      return DType::f16;
    case io::ElementType::bf16:
      return DType::bf16;
    case io::ElementType::f32:
      return DType::f32;
    case io::ElementType::e4m3:
      return DType::e4m3;
    case io::ElementType::e5m2:
      return DType::e5m2;
    default:
      return std::nullopt;
  }
}

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), as a function of a counter.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// Bytes that an array from a file takes while it is read: its own, and those of its elements as
/// doubles and as the wanted type where it is not of that.
double bytes_to_read(io::ArrayType const& array, DType wanted, bool as_it_is) {
  double elements = 1;
  for (auto const extent : array.shape) elements *= static_cast<double>(extent);
  double const rounded = as_it_is ? 0 : sizeof(double) + bits(wanted) / 8;
  return elements * (io::size_of(array.type) + rounded);
}

}  // namespace

Operand read_operand(std::string const& option, std::string const& name, std::optional<DType> type,
                     std::size_t least_rank, std::size_t most_rank, std::string const& remedy) {
  std::string const shown = io::printable(name);
  io::ArrayType const described = with_option(option, [&] { return io::describe_array(name); });
  auto const& shape = described.shape;
  if (shape.size() < least_rank || shape.size() > most_rank)
    throw argument_error(fmt::format(
        "{} {} has shape {}; it must have {}.", option, shown, io::shape_text(shape),
        least_rank == most_rank
            ? io::counted(most_rank, "axis", "axes")
            : fmt::format("{} or {}", least_rank, io::counted(most_rank, "axis", "axes"))));
  if (std::find(shape.begin(), shape.end(), 0) != shape.end())
    throw argument_error(fmt::format("{} {} has shape {}; every extent must be at least 1.", option,
                                     shown, io::shape_text(shape)));
  auto const held = dtype_of_file(described.type);
  if (!held && described.type != io::ElementType::f64)
    throw argument_error(
        fmt::format("{} {} holds {}; it must hold f16, bf16, e4m3, e5m2, f32 or f64.", option,
                    shown, io::to_string(described.type)));
  if (!type && (!held || *held == DType::f32))
    throw argument_error(fmt::format("{} {} holds {}, which no kernel multiplies; to round it, {}.",
                                     option, shown, io::to_string(described.type), remedy));
  DType const wanted = type.value_or(held.value_or(DType::f32));
  require_memory(fmt::format("{} {}", option, shown),
                 bytes_to_read(described, wanted, held == wanted));
  io::Array array = with_option(option, [&] { return io::read_array(name); });
  if (held == wanted) return {wanted, array.shape, std::move(array.data)};
  auto const values = io::to_doubles(array);
  Operand operand{wanted, array.shape,
                  round_to(wanted, values.size(), [&](std::size_t i) { return values[i]; })};
  double const half_step = half_last_step(wanted);
  for (std::size_t i = 0; i < values.size(); ++i)
    operand.lost.count(
        values[i], reference::element(operand.data.data(), wanted, static_cast<std::int64_t>(i)),
        half_step);
  return operand;
}

Operand generate(std::vector<std::int64_t> shape, DType type, std::uint64_t seed,
                 std::uint64_t stream) {
  std::int64_t count = 1;
  for (auto const extent : shape) {
    if (extent < 1 || extent > kMaxExtent || __builtin_mul_overflow(count, extent, &count) ||
        count > (std::int64_t{1} << 40))
      throw argument_error(fmt::format(
          "data of shape {} cannot be generated; extents must be at least 1, and the elements at most 2^40.",
          io::shape_text(shape)));
  }
  std::uint64_t const key = mix(seed ^ mix(stream));
  auto const value = [&](std::size_t i) {
    auto const bits24 = static_cast<float>(mix(key + i) >> 40);
    return static_cast<double>(bits24 * 0x1p-23f - 1.0f);
  };
  return {type, std::move(shape), round_to(type, static_cast<std::size_t>(count), value)};
}

void generate_missing(std::initializer_list<Operand*> operands, std::uint64_t seed) {
  std::uint64_t stream = 0;
  for (Operand* const operand : operands) {
    ++stream;
    if (operand->data.empty() && !operand->shape.empty())
      *operand = generate(operand->shape, operand->type, seed, stream);
  }
}

void agree(Extent& extent, std::int64_t from_file, char const* option, std::string const& file) {
  std::string const by = fmt::format("{} {}", option, io::printable(file));
  if (extent.value == 0) {
    extent.value = from_file;
    extent.said_by = by;
  }
  if (extent.value != from_file)
    throw argument_error(fmt::format("{}: {} is {}, but {} by {}; both must be the same.", by,
                                     extent.name, from_file, extent.value, extent.said_by));
}

namespace {

/// Bytes of memory that can be had without taking them from others: what the system says is
/// available, and what the process may still ask for.
double free_memory() {
  double bytes = std::numeric_limits<double>::infinity();
  std::ifstream info("/proc/meminfo");
  std::string name;
  double kilobytes = 0;
  for (std::string unit; info >> name >> kilobytes; std::getline(info, unit)) {
    if (name == "MemAvailable:") bytes = kilobytes * 1024;
  }
  rlimit limit = {};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    bytes = std::min(bytes, static_cast<double>(limit.rlim_cur));
  return bytes;
}

}  // namespace

void require_memory(std::string const& what, double bytes) {
  double const available = free_memory();
  if (bytes > available)
    throw argument_error(
        fmt::format("{}: about {:.3g} GB of memory are needed, and {:.3g} GB are free; a smaller "
                    "problem or a larger machine is needed.",
                    what, bytes * 1e-9, available * 1e-9));
}

void Footprint::add(Operand const& operand) {
  if (operand.shape.empty()) return;
  double bytes = bits(operand.type) / 8;
  for (auto const extent : operand.shape) bytes *= static_cast<double>(extent);
  operands += bytes;
  if (!operand.data.empty()) from_files += bytes;
}

void require_memory_of_run(std::string const& problem, Footprint const& footprint,
                           Machine const& machine) {
  constexpr double kMostGenerated = 2e9;
  // A simulated machine's memory is the host's, and has a shadow of as many bytes.
  double const bytes = (machine.is_simulated() ? 3 : 1) * footprint.operands + footprint.checking;
  double const of_files = 20 * footprint.from_files;
  if (machine.is_simulated() && bytes > std::max(kMostGenerated, of_files))
    throw argument_error(fmt::format(
        "{} need about {:.3g} GB of memory on a simulated machine; at most {:.3g} GB may be taken {}.",
        problem, bytes * 1e-9, std::max(kMostGenerated, of_files) * 1e-9,
        of_files > kMostGenerated ? "with files of these sizes"
                                  : "where the operands are generated"));
  require_memory(problem, bytes);
}

void write_operand(char const* option, std::string const& name, Operand const& operand) {
  auto const type = operand.type == DType::f16    ? io::ElementType::f16
                    : operand.type == DType::bf16 ? io::ElementType::bf16
                                                  : io::ElementType::f32;
  with_option(option, [&] { io::write_array(name, {type, operand.shape, operand.data}); });
}

Buffer<std::byte> upload(Machine const& machine, Operand const& operand, std::string const& name) {
  return Buffer<std::byte>(machine, operand.data, name);
}

std::vector<double> rows_as_doubles(Operand const& operand, std::int64_t row,
                                    std::vector<std::int64_t> const& rows) {
  std::vector<double> values;
  values.reserve(rows.size() * static_cast<std::size_t>(row));
  for (auto const r : rows)
    for (std::int64_t i = 0; i < row; ++i)
      values.push_back(reference::element(operand.data.data(), operand.type, r * row + i));
  return values;
}

}  // namespace tegula::tool
