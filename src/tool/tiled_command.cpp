#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "atom_lookup.hpp"
#include "commands.hpp"
#include "drawing.hpp"
#include "expression.hpp"
#include "options.hpp"
#include "output.hpp"
#include "tegula/atom/tiled_copy.hpp"
#include "tegula/io/text.hpp"
#include "tegula/layout/text.hpp"

namespace tegula::tool {
namespace {

/// What says a tiled MMA on the command line.
struct MmaOptions {
  std::string atom;
  std::string layout = "(1,1,1)";
  std::string tile;
};

/// f(), with what was asked for in front of why there is no such tiling.
template <class F> auto asked_for(std::string const& what, F&& f) {
  try {
    return f();
  } catch (layout_error const& error) {
    throw std::invalid_argument(fmt::format("{}: {}", what, error.what()));
  }
}

/// The tiling as it was asked for.
std::string asked(MmaOptions const& options) {
  return "--layout " + io::in_quotes(options.layout) +
         (options.tile.empty() ? "" : " --tile " + io::in_quotes(options.tile));
}

/// Threads and extents of a tile are of type int.
void require_int(char const* what, std::int64_t count) {
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  if (count > kMost) refuse(what, "a tile has at most 2^31 - 1 of them", count);
}

MmaTiling build(MmaOptions const& options, std::string const& atom_argument) {
  MmaAtom const atom = find_mma_atom(atom_argument, options.atom);
  Layout const atoms = evaluate_layout("--layout", options.layout);
  Tiler const tile =
      options.tile.empty() ? make_tile(_, _, _) : evaluate_tiler("--tile", options.tile);
  return asked_for(asked(options), [&] {
    require_int("groups of threads", atoms.size());
    require_int("threads", atoms.size() * atom.threads());
    MmaTiling const mma = make_tiled_mma(atom, atoms, tile);
    for (int mode = 0; mode < 3; ++mode)
      require_int("rows or columns of a tile", mma.mode_permutation(mode).size());
    return mma;
  });
}

std::string to_json(MmaTiling const& mma) {
  return dump({{"threads", mma.threads()},
               {"tile", {mma.extent(0), mma.extent(1), mma.extent(2)}},
               {"a", thread_value_json(mma.a())},
               {"b", thread_value_json(mma.b())},
               {"c", thread_value_json(mma.c())}});
}

std::string to_json(CopyTiling const& copy) {
  return dump({{"threads", copy.threads()},
               {"tile", {copy.extents[0], copy.extents[1]}},
               {"src", thread_value_json(copy.src())},
               {"dst", thread_value_json(copy.dst())}});
}

/// Delivers the drawing, and the tiling as JSON or `text()`. What is refused of them is what was
/// asked for.
template <class Tiling, class Text>
void deliver_of(std::string const& what, Tiling const& tiling, std::string const& svg, bool json,
                Text&& text) {
  auto const drawing = [&] { return stacked_svg(pictures(tiling)); };
  auto const report = [&] { return json ? to_json(tiling) + "\n" : text(); };
  deliver({{"--svg", svg, [&] { return asked_for(what, drawing); }}}, json,
          [&] { return asked_for(what, report); });
}

void run_mma(MmaOptions const& options, bool json, std::string const& svg) {
  MmaTiling const mma = build(options, "--atom");
  deliver_of(asked(options), mma, svg, json, [&] {
    return fmt::format(
        "{}, tile {}x{}x{} (M,N,K); (thread, value) -> flat column-major index, and who holds what:\n\n{}",
        io::counted(mma.threads(), "thread"), mma.extent(0), mma.extent(1), mma.extent(2),
        stacked_text(pictures(mma)));
  });
}

struct CopyOptions {
  std::string atom;
  std::optional<std::string> type;  ///< left out: that of the operand with --of, else f16
  std::string threads;
  std::string values = "1:1";
  std::string of;
  MmaOptions mma;
  /// What only --of heeds, and only --threads.
  std::vector<std::pair<char const*, Option>> beside_of, beside_threads;
};

constexpr DType kElementTypes[] = {DType::f64,  DType::f32,  DType::tf32, DType::f16, DType::bf16,
                                   DType::e4m3, DType::e5m2, DType::s64,  DType::u64, DType::s32,
                                   DType::u32,  DType::s16,  DType::u16,  DType::s8,  DType::u8,
                                   DType::s4,   DType::u4,   DType::b1};

/// The width of an element given by name (f16) or by its bits (16).
int element_bits(std::string const& type) {
  std::string names;
  std::set<int> widths;
  for (DType const candidate : kElementTypes) {
    if (type == to_string(candidate) || type == std::to_string(bits(candidate))) {
      return bits(candidate);
    }
    names.append(names.empty() ? "" : ", ").append(to_string(candidate));
    widths.insert(bits(candidate));
  }
  throw std::invalid_argument(
      fmt::format("--type: there is no element type {}; it is one of {}, or its width in bits: {}",
                  io::in_quotes(type), names, fmt::join(widths, ", ")));
}

std::string asked(CopyOptions const& options) {
  return options.of.empty() ? "--threads " + io::in_quotes(options.threads) + " --values " +
                                  io::in_quotes(options.values)
                            : "--of " + options.of + " " + asked(options.mma);
}

CopyTiling build(CopyOptions const& options) {
  CopyAtom const atom = find_copy_atom("--atom", options.atom);
  int const said_bits = options.type ? element_bits(*options.type) : 0;
  if (options.of.empty() == options.threads.empty()) {
    throw std::invalid_argument(
        "either --threads (and --values), or --of a|b|c with --mma is needed, and not both");
  }
  auto const& unheeded = options.of.empty() ? options.beside_of : options.beside_threads;
  for (auto const& [name, option] : unheeded)
    if (option.given())
      throw std::invalid_argument(fmt::format("{}: is said beside {}, and {} is given", name,
                                              options.of.empty() ? "--of" : "--threads",
                                              options.of.empty() ? "--threads" : "--of"));
  if (options.of.empty()) {
    Layout const threads = evaluate_layout("--threads", options.threads);
    Layout const values = evaluate_layout("--values", options.values);
    return asked_for(asked(options), [&] {
      std::int64_t elements = 0;
      if (__builtin_mul_overflow(threads.size(), values.size(), &elements))
        elements = std::numeric_limits<std::int64_t>::max();
      require_int("elements of a tile", elements);
      return make_tiled_copy(atom, said_bits != 0 ? said_bits : 16, threads, values);
    });
  }
  if (options.mma.atom.empty()) {
    throw std::invalid_argument(
        "--of needs the tiled MMA: --mma NAME, and its --layout and --tile");
  }
  MmaTiling const mma = build(options.mma, "--mma");
  bool const a = options.of == "a" || options.of == "A", b = options.of == "b" || options.of == "B";
  if ((a && !mma.atom.a_in_registers()) || (b && !mma.atom.b_in_registers()))
    throw std::invalid_argument(
        fmt::format("--of {}: {} reads that operand from shared memory, and a copy is matched to "
                    "what registers hold",
                    options.of, io::in_quotes(options.mma.atom)));
  MmaSpec const& spec = mma.atom.spec;
  int const bits = said_bits != 0 ? said_bits : tegula::bits(a ? spec.a : b ? spec.b : spec.c);
  return asked_for("--of " + options.of, [&] {
    return a   ? make_tiled_copy_a(atom, bits, mma)
           : b ? make_tiled_copy_b(atom, bits, mma)
               : make_tiled_copy_c(atom, bits, mma);
  });
}

void run_copy(CopyOptions const& options, bool json, std::string const& svg) {
  CopyTiling const copy = build(options);
  deliver_of(asked(options), copy, svg, json, [&] {
    return fmt::format(
        "{}, tile {}x{} of {}-bit elements; (thread, value) -> flat column-major index, and who holds what:"
        "\n\n{}",
        io::counted(copy.threads(), "thread"), copy.extents[0], copy.extents[1], copy.element_bits,
        stacked_text(pictures(copy)));
  });
}

}  // namespace

void add_tiled_mma_command(Command const& app) {
  Command const command =
      app.add_command("tiled-mma", "Repeat an MMA over threads and over a tile");
  command.footer(R"(Examples:
  tegula tiled-mma --atom SM80_16x8x16_F32F16F16F32_TN --layout '(2,2,1)' --tile '<32,32,16>'
  tegula tiled-mma --atom SM80_16x8x16_F32F16F16F32_TN --layout '(4,1,1)' --json
  tegula tiled-mma --atom SM80_16x8x8_F32TF32TF32F32_TN --layout '(2,2,1):(2,1,4)' --tile '<_,(8,2,2):(1,16,8),_>'
  tegula tiled-mma --atom SM80_16x8x32_S32S8S8S32_TN --svg mma.svg)");
  struct Options {
    MmaOptions mma;
    std::string svg;
    bool json = false;
  };
  auto const options = std::make_shared<Options>();
  command.add_option("--atom", options->mma.atom, "The MMA instruction (see `tegula atoms`)")
      .required();
  command
      .add_option("--layout", options->mma.layout,
                  "Which group of threads works at (m,n,k): a layout of atoms (default: (1,1,1))")
      .check(not_empty("a layout of atoms"));
  command
      .add_option(
          "--tile", options->mma.tile,
          "The tile: for each of M, N, K an extent, a layout (a permutation), or '_' (default: what the atoms cover)")
      .check(not_empty("a tile"));
  command.add_flag(
      "--json", options->json,
      "Write JSON: threads, tile, and the (thread, value) layouts and tables of a, b, c");
  command.add_drawing("--svg", options->svg,
                      "Draw A, B and C to FILE, or to standard output, coloured by thread");
  command.callback([options] { run_mma(options->mma, options->json, options->svg); });
}

void add_tiled_copy_command(Command const& app) {
  Command const command =
      app.add_command("tiled-copy", "Repeat a copy over threads and over a tile");
  command.footer(R"(Examples:
  tegula tiled-copy --atom 'SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>' --type f16 --threads '(16,8):(8,1)' --values '(1,8)'
  tegula tiled-copy --atom 'UniversalCopy<uint32_t>' --type f32 --threads '(32,4)' --values '(1,4)' --json
  tegula tiled-copy --atom SM75_U32x4_LDSM_N --type f16 --of a --mma SM80_16x8x16_F32F16F16F32_TN --layout '(2,2,1)' --tile '<32,32,16>'
  tegula tiled-copy --atom SM75_U16x8_LDSM_T --of b --mma SM80_16x8x16_F32F16F16F32_TN --layout '(4,1,1)' --tile '<_,16,_>' --json)");
  struct Options {
    CopyOptions copy;
    std::string svg;
    bool json = false;
  };
  auto const options = std::make_shared<Options>();
  CopyOptions& copy = options->copy;
  command.add_option("--atom", copy.atom, "The copy instruction (see `tegula atoms`)").required();
  command.add_text(
      "--type", copy.type,
      "The element type, or its width in bits (default: f16; with --of that of the operand)");
  command
      .add_option("--threads", copy.threads,
                  "Which thread copies at (m,n) of the tile: a layout of threads")
      .check(not_empty("a layout of threads"));
  copy.beside_threads = {
      {"--values",
       command
           .add_option(
               "--values", copy.values,
               "Which of a thread's values lies at (i,j) of its block: a layout of values (default: 1:1)")
           .check(not_empty("a layout of values"))}};
  command
      .add_option(
          "--of", copy.of,
          "In place of --threads: give each thread what it holds of operand a, b or c of the tiled MMA that --mma, --layout and --tile describe")
      .check(one_of({"a", "b", "c", "A", "B", "C"}));
  copy.beside_of = {
      {"--mma",
       command.add_option("--mma,--mma-atom", copy.mma.atom, "With --of: the MMA instruction")
           .check(not_empty("the name of an MMA"))},
      {"--layout", command
                       .add_option("--layout,--mma-layout", copy.mma.layout,
                                   "With --of: the layout of atoms (default: (1,1,1))")
                       .check(not_empty("a layout of atoms"))},
      {"--tile",
       command
           .add_option("--tile,--mma-tile", copy.mma.tile, "With --of: the tile of the tiled MMA")
           .check(not_empty("a tile"))}};
  command.add_flag(
      "--json", options->json,
      "Write JSON: threads, tile, and the (thread, value) layouts and tables of src and dst");
  command.add_drawing(
      "--svg", options->svg,
      "Draw source and destination to FILE, or to standard output, coloured by thread");
  command.callback([options] { run_copy(options->copy, options->json, options->svg); });
}

}  // namespace tegula::tool
