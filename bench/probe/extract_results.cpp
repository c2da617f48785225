// Reads the files of a probe and prints a header for tests/numeric/data: a sample of the GPU's
// results as they are, and digests of all.
//   extract_results mma FOLDER > tests/numeric/data/h100_results.hpp
//   extract_results wgmma FOLDER > tests/numeric/data/h100_wgmma_results.hpp
// The first reads a FOLDER of arithmetic_probe, the second one of wgmma_probe.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <probe_files.hpp>
#include <string>
#include <string_view>
#include <vector>
#include <wgmma_cases.hpp>

namespace {

using namespace tegula;
using namespace tegula::probe;

std::vector<std::uint8_t> read_file(std::string const& path) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) {
    std::fprintf(stderr, "cannot read %s\n", path.c_str());
    std::exit(1);
  }
  std::vector<std::uint8_t> bytes;
  std::uint8_t buffer[65536];
  while (std::size_t const n = std::fread(buffer, 1, sizeof buffer, file)) {
    bytes.insert(bytes.end(), buffer, buffer + n);
  }
  std::fclose(file);
  return bytes;
}

/// Takes a file's contents from front to back.
struct Reader {
  std::vector<std::uint8_t> bytes;
  std::size_t at = 0;

  std::vector<std::uint32_t> words(std::size_t count) {
    if (bytes.size() - at < count * 4) {
      std::fprintf(stderr, "a file of %zu bytes ends too early\n", bytes.size());
      std::exit(1);
    }
    std::vector<std::uint32_t> values(count);
    std::memcpy(values.data(), bytes.data() + at, count * 4);
    at += count * 4;
    return values;
  }
  /// A first result and steps of 4 bits, or (after `raw` results) of 8.
  std::vector<std::uint32_t> steps(std::size_t count, int step_bits, std::size_t raw) {
    std::vector<std::uint32_t> values = words(raw);
    values.resize(count);
    for (std::size_t i = raw; i < count; ++i) {
      std::uint8_t const byte =
          step_bits == 4 ? bytes[at + i / 2] >> (4 * (i % 2)) : bytes[at + i - raw];
      int const range = 1 << step_bits;
      int const code = byte & (range - 1);
      values[i] =
          values[i - 1] + static_cast<std::uint32_t>(code >= range / 2 ? code - range : code);
    }
    at += step_bits == 4 ? count / 2 : count - raw;
    return values;
  }
};

void print_mma(std::string const& folder) {
  Reader file{read_file(folder + "/mma.bin")};
  std::vector<std::string> digests;
  std::printf("inline constexpr MmaResult kMmaResults[] = {\n");
  int column = 0;
  for (int op = 0; op < kMmaSubjectCount; ++op) {
    for (int set = 0; set < kCaseSets; ++set) {
      int const cases = kept_cases(op, static_cast<CaseSet>(set));
      if (cases == 0) continue;
      Digest digest;
      for (int index = 0; index < cases; ++index) {
        std::vector<std::uint32_t> const d = file.words(128);
        for (std::uint32_t word : d) digest.add(word);
        int const wanted = mma_subject(op).d == DType::s32 ? 16 : 48;
        int const samples = (index + 1) * wanted / cases - index * wanted / cases;
        for (int sample = 0; sample < samples; ++sample) {
          bool const half = mma_subject(op).d == DType::f16;
          int const word = half ? (index * 29 + sample * 5) % 32 * 4 + sample % 2
                                : (index * 37 + sample * 11) % 128;
          std::printf("%s{%d, %d, %d, %d, 0x%x},%s", column == 0 ? "    " : " ", op, set, index,
                      word, d[static_cast<std::size_t>(word)], column == 3 ? "\n" : "");
          column = (column + 1) % 4;
        }
      }
      char text[96];
      std::snprintf(text, sizeof text, "    {%d, %d, %d, 0x%016llx},\n", op, set, cases,
                    static_cast<unsigned long long>(digest.state));
      digests.push_back(text);
    }
  }
  std::printf("%s};\n\ninline constexpr MmaDigest kMmaDigests[] = {\n", column == 0 ? "" : "\n");
  for (std::string const& line : digests) std::fputs(line.c_str(), stdout);
  std::printf("};\n\n");
}

void print_function(char const* name, std::vector<std::uint32_t> const& arguments,
                    std::vector<std::uint32_t> const& results) {
  Digest digest;
  for (std::uint32_t word : results) digest.add(word);
  std::printf("inline constexpr std::uint64_t k%sDigest = 0x%016llx;\n", name,
              static_cast<unsigned long long>(digest.state));
  std::printf("inline constexpr FunctionResult k%sResults[] = {\n", name);
  Random random{results.size()};
  for (int i = 0; i < 300; ++i) {
    std::size_t const at = random.next() % results.size();
    std::printf("%s{0x%08x, 0x%08x},%s", i % 4 == 0 ? "    " : " ", arguments[at], results[at],
                i % 4 == 3 ? "\n" : "");
  }
  std::printf("};\n\n");
}

constexpr char const* kOrigin =
    "#pragma once\n\n#include <cstdint>\n\n"
    "/// Results taken from an NVIDIA H100 80GB HBM3 (sm_90) by bench/probe. Written by\n"
    "/// bench/probe/extract_results.cpp.\n"
    "namespace tegula::h100 {\n\n";

void print_mma_and_functions(std::string const& folder) {
  std::printf(
      "%s"
      "/// Register `word` (4 * lane + register) of D for mma_case(op, set, index).\n"
      "struct MmaResult {\n  std::uint8_t op, set;\n  std::uint16_t index;\n  std::uint8_t word;\n"
      "  std::uint32_t d;\n};\n\n"
      "/// All registers of D for the cases 0 to cases - 1 of a set, in order.\n"
      "struct MmaDigest {\n  std::uint8_t op, set;\n  std::uint16_t cases;\n  std::uint64_t digest;\n};\n\n"
      "/// binary32 bits.\nstruct FunctionResult {\n  std::uint32_t argument, result;\n};\n\n"
      "// clang-format off\n",
      kOrigin);
  print_mma(folder);
  std::vector<std::uint32_t> const binade = consecutive(0x3f800000u, std::size_t{1} << 23);
  std::vector<std::uint32_t> const two_binades = consecutive(0x3f800000u, std::size_t{1} << 24);
  std::size_t const kRandom = std::size_t{1} << 18;

  Reader first{read_file(folder + "/ex2_rcp_tanh.bin")};
  print_function("Ex2", ex2_arguments(), first.steps(binade.size(), 4, 1));
  print_function("Rcp", binade, first.steps(binade.size(), 4, 1));
  print_function("Ex2Random", random_floats(1, kRandom, -30, 30, true), first.words(kRandom));
  print_function("Tanh", random_floats(2, kRandom, -20, 25, false), first.words(kRandom));
  Reader second{read_file(folder + "/rsqrt.bin")};
  print_function("Rsqrt", two_binades, second.steps(two_binades.size(), 4, 1));
  Reader third{read_file(folder + "/lg2.bin")};
  print_function("Lg2", binade, third.steps(binade.size(), 8, std::size_t{1} << 19));
  print_function("Lg2Random", random_floats(3, kRandom, -126, 254, false), third.words(kRandom));
  std::printf("// clang-format on\n\n}  // namespace tegula::h100\n");
}

void print_wgmma(std::string const& folder) {
  Reader file{read_file(folder + "/results.bin")};
  std::printf(
      "%s"
      "/// Element (row, column) of D for wgmma_case(subject, set, kKeptWgmmaN, index).\n"
      "struct WgmmaResult {\n  std::uint8_t subject, set, index, row, column;\n  std::uint32_t d;\n};\n\n"
      "/// All elements of D, row-major, for the cases 0 to kKeptWgmmaCases - 1 of a set, in order.\n"
      "struct WgmmaDigest {\n  std::uint8_t subject, set;\n  std::uint64_t digest;\n};\n\n"
      "// clang-format off\n"
      "inline constexpr WgmmaResult kWgmmaResults[] = {\n",
      kOrigin);
  std::string digests;
  for (int subject = 0; subject < kWgmmaSubjectCount; ++subject) {
    for (int set = 0; set < kWgmmaSets; ++set) {
      Digest digest;
      for (int index = 0; index < kKeptWgmmaCases; ++index) {
        std::vector<std::uint32_t> const d = file.words(kWgmmaM * kKeptWgmmaN);
        for (std::uint32_t word : d) digest.add(word);
        int const row = (index * 37 + set * 5 + subject) % kWgmmaM;
        int const column = (index * 3 + set) % kKeptWgmmaN;
        std::printf("%s{%d, %d, %d, %d, %d, 0x%x},%s", index % 4 == 0 ? "    " : " ", subject, set,
                    index, row, column, d[static_cast<std::size_t>(row * kKeptWgmmaN + column)],
                    index % 4 == 3 ? "\n" : "");
      }
      char text[96];
      std::snprintf(text, sizeof text, "    {%d, %d, 0x%016llx},\n", subject, set,
                    static_cast<unsigned long long>(digest.state));
      digests += text;
    }
  }
  if (file.at != file.bytes.size()) {
    std::fprintf(stderr, "results.bin has %zu bytes; %zu were expected\n", file.bytes.size(),
                 file.at);
    std::exit(1);
  }
  std::printf(
      "};\n\ninline constexpr WgmmaDigest kWgmmaDigests[] = {\n%s};\n"
      "// clang-format on\n\n}  // namespace tegula::h100\n",
      digests.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  std::string_view const probe = argc == 3 ? argv[1] : "";
  if (probe == "mma") {
    print_mma_and_functions(argv[2]);
  } else if (probe == "wgmma") {
    print_wgmma(argv[2]);
  } else {
    std::fprintf(stderr, "usage: %s mma|wgmma FOLDER\n", argv[0]);
    return 1;
  }
  return 0;
}
