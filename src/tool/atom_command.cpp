#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include "atom_lookup.hpp"
#include "commands.hpp"
#include "drawing.hpp"
#include "output.hpp"
#include "tegula/atom/copy_atom.hpp"
#include "tegula/atom/mma_atom.hpp"
#include "tegula/layout/text.hpp"

namespace tegula::tool {
namespace {

/// An operand; one that the instruction reads from shared memory has no table.
nlohmann::ordered_json operand_json(Layout const& tv, bool in_registers) {
  if (in_registers) return thread_value_json(tv);
  return {{"layout", to_string(tv)}, {"values", tv[1].size()}, {"in", "shared memory"}};
}

nlohmann::ordered_json to_json(MmaAtom const& atom) {
  return {{"name", atom.name.text},
          {"kind", "mma"},
          {"shape_mnk", {atom.m, atom.n, atom.k}},
          {"threads", atom.threads},
          {"types",
           {{"a", to_string(atom.a_type)},
            {"b", to_string(atom.b_type)},
            {"c", to_string(atom.c_type)},
            {"d", to_string(atom.d_type)}}},
          {"a", operand_json(atom.a, atom.a_in_registers())},
          {"b", operand_json(atom.b, atom.b_in_registers())},
          {"c", thread_value_json(atom.c)}};
}

nlohmann::ordered_json to_json(CopyAtom const& atom) {
  return {{"name", atom.name.text},
          {"kind", "copy"},
          {"threads", atom.threads},
          {"src", thread_value_json(atom.src)},
          {"dst", thread_value_json(atom.dst)},
          {"ref", thread_value_json(atom.ref)}};
}

std::string report(MmaAtom const& atom) {
  char const* const in_shared_memory = atom.a_in_registers()
                                           ? atom.b_in_registers() ? "" : "; B in shared memory"
                                           : "; A and B in shared memory";
  return fmt::format(
      "{}\nD = A B + C: A {}x{} {}, B {}x{} {}, C {}, D {}x{} {}; {} threads{}\n\n"
      "(thread, value) -> flat column-major index, and who holds what:\n\n{}",
      atom.name.text, atom.m, atom.k, to_string(atom.a_type), atom.k, atom.n, to_string(atom.b_type),
      to_string(atom.c_type), atom.m, atom.n, to_string(atom.d_type), atom.threads, in_shared_memory,
      stacked_text(pictures(atom)));
}

std::string report(CopyAtom const& atom) {
  return fmt::format("{}\n{} thread{}\n\n(thread, value) -> bit, and who holds what:\n\n{}", atom.name.text,
                     atom.threads, atom.threads == 1 ? "" : "s", stacked_text(pictures(atom)));
}

/// The width of the wgmma that stands for all widths in the list: one that every kind has.
constexpr int kShownN = 128;

void list_atoms(bool json) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  any_mma([&](MmaSpec const& spec) {
    MmaAtom const atom = mma_atom(spec);
    if (json) {
      list.push_back({{"name", atom.name.text},
                      {"kind", "mma"},
                      {"shape_mnk", {atom.m, atom.n, atom.k}},
                      {"threads", atom.threads}});
    } else if (spec.operands != MmaOperands::warp) {
      // One line for all widths.
      if (spec.n != kShownN) return false;
      std::string name = atom.name.text;
      std::string const width = fmt::format("x{}x", kShownN);
      name.replace(name.find(width), width.size(), "xNx");
      print("mma   {:3} threads  {:<44} D {} A {} B {} C {}; N = 8, {}\n", atom.threads, name,
            to_string(atom.d_type), to_string(atom.a_type), to_string(atom.b_type), to_string(atom.c_type),
            spec.d == DType::s32 ? "16, 24, 32, 48, ... 256" : "16, ... 256");
    } else {
      print("mma   {:3} threads  {:<44} D {} A {} B {} C {}\n", atom.threads, atom.name.text,
            to_string(atom.d_type), to_string(atom.a_type), to_string(atom.b_type), to_string(atom.c_type));
    }
    return false;
  });
  any_copy([&](CopySpec const& spec) {
    CopyAtom const atom = copy_atom(spec);
    std::int64_t const bits = std::max(atom.src[1].size(), atom.dst[1].size());
    if (json) {
      list.push_back({{"name", atom.name.text}, {"kind", "copy"}, {"threads", atom.threads}});
    } else {
      print("copy  {:3} thread{}  {:<44} {}\n", atom.threads, atom.threads == 1 ? " " : "s", atom.name.text,
            bits == 1 ? std::string("as wide as layouts allow") : fmt::format("{} bits a thread", bits));
    }
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

void add_atoms_command(CLI::App& app) {
  CLI::App* const command = app.add_subcommand("atoms", "List the MMA and copy instructions");
  command->footer("Examples:\n  tegula atoms\n  tegula atoms --json");
  auto const json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Write a JSON array");
  command->callback([json] { list_atoms(*json); });
}

void add_atom_command(CLI::App& app) {
  CLI::App* const command =
      app.add_subcommand("atom", "Show an instruction: its shape, and which thread holds which element");
  command->footer(
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
  command->add_option("NAME", options->name, "The instruction's name, as `tegula atoms` lists it")
      ->required();
  command->add_flag("--json", options->json, "Write JSON");
  add_drawing_option(*command, "--svg", options->svg,
                     "Draw it to FILE, or to standard output, coloured by thread");
  command->callback([options] { show_atom(options->name, options->json, options->svg); });
}

}  // namespace tegula::tool
