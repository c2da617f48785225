#include "kernel_cache.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <system_error>
#include <tuple>

#include "tegula/device/error.hpp"

namespace tegula::device {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "tegula kernel 1\n", kSuffix = ".kernel", kTemporary = ".tmp";
constexpr std::uint64_t kDefaultCapacity = std::uint64_t{512} << 20;

/// FNV-1a over 64 bits, of words of 8 bytes and then of the rest.
std::uint64_t hash(std::string_view bytes, std::uint64_t value = 0xcbf29ce484222325) {
  constexpr std::uint64_t prime = 0x100000001b3;
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    std::uint64_t word = 0;
    bytes.copy(reinterpret_cast<char*>(&word), 8);
    value = (value ^ word) * prime;
    value ^= value >> 32;  // the product carries upwards only
  }
  for (char const c : bytes) value = (value ^ static_cast<unsigned char>(c)) * prime;
  return value ^ (value >> 29);
}

/// Every part with its length, so that no two keys have one text.
std::string text_of(KernelKey const& key) {
  std::string text;
  for (std::string const* const part :
       {&key.name, &key.arch, &key.compiler, &key.options, &key.headers, &key.source})
    text += fmt::format("{} {}\n", part->size(), *part);
  return text;
}

/// The parts of such a text; nothing where it is none.
std::optional<KernelKey> parse_key(std::string_view text) {
  KernelKey key;
  for (std::string* const part :
       {&key.name, &key.arch, &key.compiler, &key.options, &key.headers, &key.source}) {
    std::size_t size = 0;
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (error != std::errc()) return {};
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.size() < 2 || size > text.size() - 2) return {};
    *part = text.substr(1, size);
    text.remove_prefix(size + 2);
  }
  return key;
}

/// A file: the magic line; the checksum of what follows it, and the key's size; the key; the cubin.
std::string file_of(KernelKey const& key, std::string_view cubin) {
  std::string const text = text_of(key);
  std::string const rest = fmt::format("{}\n{}{}", text.size(), text, cubin);
  return fmt::format("{}{:016x}\n{}", kMagic, hash(rest), rest);
}

struct Entry {
  std::string key, cubin;
};

/// Nothing for what is no whole file of this form.
std::optional<Entry> parse_file(std::string_view file) {
  constexpr std::size_t digits = 16;
  if (!file.starts_with(kMagic) || file.size() < kMagic.size() + digits + 1) return {};
  file.remove_prefix(kMagic.size());
  std::uint64_t checksum = 0;
  std::from_chars(file.data(), file.data() + digits, checksum, 16);
  if (file[digits] != '\n') return {};
  file.remove_prefix(digits + 1);
  if (hash(file) != checksum) return {};
  std::size_t size = 0;
  auto const [end, error] = std::from_chars(file.data(), file.data() + file.size(), size);
  file.remove_prefix(static_cast<std::size_t>(end - file.data()));
  if (error != std::errc() || file.empty() || size > file.size() - 1) return {};
  return Entry{std::string(file.substr(1, size)), std::string(file.substr(1 + size))};
}

std::optional<std::string> read_file(fs::path const& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return {};
  std::string bytes(std::istreambuf_iterator<char>(stream), {});
  if (stream.bad()) return {};
  return bytes;
}

/// Writes all of it under another name, then renames it: a reader sees the whole file or none.
void write_file(fs::path const& path, std::string const& bytes) {
  static std::atomic<unsigned> count = 0;
  fs::path const temporary =
      fmt::format("{}.{}.{}{}", path.string(), getpid(), count++, kTemporary);
  std::error_code error;
  {
    std::ofstream stream(temporary, std::ios::binary);
    stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    stream.close();
    if (!stream) error = std::make_error_code(std::errc::io_error);
  }
  if (!error) fs::rename(temporary, path, error);
  if (!error) return;
  std::error_code ignored;
  fs::remove(temporary, ignored);
  throw device_error(fmt::format(
      "the kernel cache cannot write {} ({}); set TEGULA_CACHE to a folder that can be written.",
      path.string(), error.message()));
}

bool has_suffix(fs::path const& path, std::string_view suffix) {
  return path.filename().string().ends_with(suffix);
}

}  // namespace

std::string with_included(std::string source, std::vector<std::string> const& include) {
  constexpr std::string_view directive = "#include \"";
  std::set<fs::path> met;
  // What is appended is searched in its turn.
  for (std::size_t at = source.find(directive); at != std::string::npos;
       at = source.find(directive, at + 1)) {
    std::size_t const begin = at + directive.size(), end = source.find('"', begin);
    if (end == std::string::npos) break;
    std::string const name = source.substr(begin, end - begin);
    for (std::string const& folder : include) {
      fs::path const path = fs::path(folder) / name;
      std::optional<std::string> const text = met.contains(path) ? std::nullopt : read_file(path);
      if (!text) continue;
      met.insert(path);
      source += *text;
      break;
    }
  }
  return source;
}

KernelCache KernelCache::of_user() {
  auto const variable = [](char const* name) {
    char const* const value = std::getenv(name);
    return std::string(value != nullptr ? value : "");
  };
  std::string folder = variable("TEGULA_CACHE");
  if (folder.empty()) {
    std::string const base = variable("XDG_CACHE_HOME"), home = variable("HOME");
    if (!base.empty()) folder = base + "/tegula";
    if (base.empty() && !home.empty()) folder = home + "/.cache/tegula";
  }
  std::uint64_t capacity = kDefaultCapacity;
  if (std::string const said = variable("TEGULA_CACHE_BYTES"); !said.empty()) {
    auto const [end, error] = std::from_chars(said.data(), said.data() + said.size(), capacity);
    if (error != std::errc() || end != said.data() + said.size())
      throw argument_error(
          fmt::format("TEGULA_CACHE_BYTES is {}; it must be a number of bytes.", said));
  }
  return {std::move(folder), capacity};
}

std::string KernelCache::path(KernelKey const& key) const {
  std::string const text = text_of(key);
  return fmt::format("{}/{:016x}{:016x}{}", folder_, hash(text), hash(text, 0x9e3779b97f4a7c15),
                     kSuffix);
}

std::optional<std::string> KernelCache::load(KernelKey const& key) const {
  if (folder_.empty()) return {};
  fs::path const file = path(key);
  auto const bytes = read_file(file);
  auto entry = bytes ? parse_file(*bytes) : std::nullopt;
  if (!entry || entry->key != text_of(key)) return {};
  std::error_code ignored;
  fs::last_write_time(file, fs::file_time_type::clock::now(), ignored);  // it was used
  return std::move(entry->cubin);
}

void KernelCache::store(KernelKey const& key, std::string_view cubin) const {
  if (folder_.empty()) return;
  std::error_code error;
  if (fs::create_directories(folder_, error))
    fs::permissions(folder_, fs::perms::owner_all, error);  // code that will be run is kept here
  write_file(path(key), file_of(key, cubin));
  make_room();
}

void KernelCache::make_room() const {
  struct File {
    fs::file_time_type used;
    std::uint64_t bytes;
    fs::path path;
  };
  std::vector<File> files;
  std::uint64_t total = 0;
  std::error_code error, ignored;
  auto const now = fs::file_time_type::clock::now();
  // Others may be writing and removing files at the same time: what is gone is not counted.
  for (fs::directory_iterator i(folder_, error), end; !error && i != end; i.increment(error)) {
    std::error_code gone;
    auto const used = fs::last_write_time(i->path(), gone);
    auto const bytes = fs::file_size(i->path(), gone);
    if (gone) continue;
    if (has_suffix(i->path(), kTemporary) && now - used > std::chrono::hours(1))
      fs::remove(i->path(), ignored);  // of a process that was killed
    if (!has_suffix(i->path(), kSuffix)) continue;
    files.push_back({used, bytes, i->path()});
    total += bytes;
  }
  std::ranges::sort(files, {}, [](File const& file) { return std::tie(file.used, file.path); });
  for (File const& file : files) {
    if (total <= capacity_) return;
    fs::remove(file.path, ignored);
    total -= file.bytes;
  }
}

std::vector<CachedKernel> KernelCache::list() const {
  std::vector<CachedKernel> all;
  std::error_code error;
  for (fs::directory_iterator i(folder_, error), end; !error && i != end; i.increment(error)) {
    if (!has_suffix(i->path(), kSuffix)) continue;
    auto const bytes = read_file(i->path());
    auto const entry = bytes ? parse_file(*bytes) : std::nullopt;
    auto const key = entry ? parse_key(entry->key) : std::nullopt;
    if (key && !key->arch.empty())
      all.push_back({key->name, key->arch, key->compiler, i->path().string(), entry->cubin.size()});
  }
  std::ranges::sort(all, {},
                    [](CachedKernel const& k) { return std::tie(k.name, k.arch, k.path); });
  return all;
}

}  // namespace tegula::device
