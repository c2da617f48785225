#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include "atom_lookup.hpp"
#include "commands.hpp"
#include "drawing.hpp"
#include "options.hpp"
#include "output.hpp"
#include "tegula/atom/catalogue.hpp"
#include "tegula/io/text.hpp"
#include "tegula/layout/text.hpp"

namespace tegula::tool {
namespace {

/// An operand; one that the instruction reads from shared memory has no table.
nlohmann::ordered_json operand_json(Layout const& tv, bool in_registers) {
  if (in_registers) return thread_value_json(tv);
  return {{"layout", to_string(tv)}, {"values", tv[1].size()}, {"in", "shared memory"}};
}

nlohmann::ordered_json to_json(MmaAtom const& atom) {
  MmaSpec const& s = atom.spec;
  return {{"name", mma_name(s).text},
          {"kind", "mma"},
          {"shape_mnk", {s.m, s.n, s.k}},
          {"threads", atom.threads()},
          {"types",
           {{"a", to_string(s.a)},
            {"b", to_string(s.b)},
            {"c", to_string(s.c)},
            {"d", to_string(s.d)}}},
          {"a", operand_json(atom.a, atom.a_in_registers())},
          {"b", operand_json(atom.b, atom.b_in_registers())},
          {"c", thread_value_json(atom.c)}};
}

nlohmann::ordered_json to_json(CopyAtom const& atom) {
  return {{"name", copy_name(atom.spec).text},  {"kind", "copy"},
          {"threads", atom.threads()},          {"src", thread_value_json(atom.src)},
          {"dst", thread_value_json(atom.dst)}, {"ref", thread_value_json(atom.ref)}};
}

std::string report(MmaAtom const& atom) {
  MmaSpec const& s = atom.spec;
  char const* const in_shared_memory = atom.a_in_registers()
                                           ? atom.b_in_registers() ? "" : "; B in shared memory"
                                           : "; A and B in shared memory";
  return fmt::format(
      "{}\nD = A B + C: A {}x{} {}, B {}x{} {}, C {}, D {}x{} {}; {}{}\n\n"
      "(thread, value) -> flat column-major index, and who holds what:\n\n{}",
      mma_name(s).text, s.m, s.k, to_string(s.a), s.k, s.n, to_string(s.b), to_string(s.c), s.m,
      s.n, to_string(s.d), io::counted(atom.threads(), "thread"), in_shared_memory,
      stacked_text(pictures(atom)));
}

std::string report(CopyAtom const& atom) {
  return fmt::format("{}\n{}\n\n(thread, value) -> bit, and who holds what:\n\n{}",
                     copy_name(atom.spec).text, io::counted(atom.threads(), "thread"),
                     stacked_text(pictures(atom)));
}

/// The width of the wgmma that stands for all widths in the list: one that every kind has.
constexpr int kShownN = 128;

void list_atoms(bool json) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  auto const line = [](char const* kind, int threads, std::string const& name,
                       std::string const& what) {
    print("{:<4}  {:3} {:<7}  {:<44} {}\n", kind, threads, io::noun(threads, "thread"), name, what);
  };
  any_mma([&](MmaSpec const& s) {
    bool const warpgroup = threads(s) == kWarpgroupSize;
    std::string name = mma_name(s).text;
    if (json) {
      list.push_back({{"name", name},
                      {"kind", "mma"},
                      {"shape_mnk", {s.m, s.n, s.k}},
                      {"threads", threads(s)}});
      return false;
    }
    if (warpgroup && s.n != kShownN) return false;
    std::string what = fmt::format("D {} A {} B {} C {}", to_string(s.d), to_string(s.a),
                                   to_string(s.b), to_string(s.c));
    if (warpgroup) {  // one line for all widths
      std::string const width = fmt::format("x{}x", kShownN);
      name.replace(name.find(width), width.size(), "xNx");
      what += s.d == DType::s32 ? "; N = 8, 16, 24, 32, 48, ... 256" : "; N = 8, 16, ... 256";
    }
    line("mma", threads(s), name, what);
    return false;
  });
  any_copy([&](CopySpec const& s) {
    int const threads = moves_matrices(s.op) ? 32 : 1;
    std::string const name = copy_name(s).text;
    if (json) {
      list.push_back({{"name", name}, {"kind", "copy"}, {"threads", threads}});
      return false;
    }
    std::string what = "a whole tile";
    if (s.op == CopyOp::auto_vectorizing) {
      what = "as wide as layouts allow";
    } else if (!moves_tiles(s.op)) {
      CopyAtom const atom = copy_atom(s);
      what = io::counted(std::max(atom.src[1].size(), atom.dst[1].size()), "bit") + " a thread";
    }
    line("copy", threads, name, what);
    return false;
  });
  if (json) {
    print("{}\n", dump(list));
  }
}

template <class A> void show(A const& atom, bool json, std::string const& svg) {
  deliver({{"--svg", svg, [&] { return stacked_svg(pictures(atom)); }}}, json,
          [&] { return json ? dump(to_json(atom)) + "\n" : report(atom); });
}

void show_atom(std::string const& name, bool json, std::string const& svg) {
  Atom const atom = find_atom("NAME", name);
  if (atom.mma) {
    show(*atom.mma, json, svg);
  } else {
    show(*atom.copy, json, svg);
  }
}

}  // namespace

void add_atoms_command(Command const& app) {
  Command const command = app.add_command("atoms", "List the MMA and copy instructions");
  command.footer("Examples:\n  tegula atoms\n  tegula atoms --json");
  auto const json = std::make_shared<bool>(false);
  command.add_flag("--json", *json, "Write a JSON array");
  command.callback([json] { list_atoms(*json); });
}

void add_atom_command(Command const& app) {
  Command const command = app.add_command(
      "atom", "Show an instruction: its shape, and which thread holds which element");
  command.footer(
      R"(The (thread, value) layouts of an MMA give the flat column-major index of an element of A (M x K), B (N x K) and C (M x N);
those of a copy give a bit. In JSON, table[t + threads * v] is the index for value v of thread t.

Operands that wgmma (SM90_64x...) reads from shared memory have no table and no drawing.

Examples:
  tegula atom SM80_16x8x16_F32F16F16F32_TN
  tegula atom SM90_64x128x16_F32BF16BF16_SS
  tegula atom SM75_U32x4_LDSM_N --json
  tegula atom 'SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>'
  tegula atom SM80_16x8x8_F32TF32TF32F32_TN --svg mma.svg)");
  struct Options {
    std::string name;
    std::string svg;
    bool json = false;
  };
  auto const options = std::make_shared<Options>();
  command.add_option("NAME", options->name, "The instruction's name, as `tegula atoms` lists it")
      .required();
  command.add_flag("--json", options->json, "Write JSON");
  command.add_drawing("--svg", options->svg,
                      "Draw it to FILE, or to standard output, coloured by thread");
  command.callback([options] { show_atom(options->name, options->json, options->svg); });
}

}  // namespace tegula::tool
