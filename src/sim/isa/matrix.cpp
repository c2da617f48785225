#include <fmt/format.h>

#include <cstring>

#include "isa/current_cta.hpp"
#include "machine/cluster.hpp"
#include "tegula/sim/arithmetic.hpp"
#include "tegula/sim/hooks.hpp"

/// Instructions of a warp on matrices: ldmatrix, stmatrix, movmatrix, mma.sync.
namespace tegula::sim {

namespace {

/// Ends the cluster where the simulated GPU lacks an mma.sync: PTX ISA, "mma", target notes.
void check_generation(Cta& cta, MmaSpec const& op, SourceLocation where) {
  int const has = spec_of(cta.generation()).compute_capability;
  if (has >= op.sm) return;
  cta.fail(
      FindingKind::invalid_operand, where, cta.here(),
      fmt::format("mma.sync.m{}n{}k{} of {} and {} is an instruction of sm_{}, and the machine "
                  "an sm_{}",
                  op.m, op.n, op.k, to_string(op.a), to_string(op.b), op.sm, has));
}

/// Likewise a form of ldmatrix or stmatrix.
void check_generation(Cta& cta, Instruction instruction, MatrixForm form, SourceLocation where) {
  int const has = spec_of(cta.generation()).compute_capability;
  bool const bytes = form == MatrixForm::bytes_transposed;
  int const needs = bytes ? 100 : instruction == Instruction::stmatrix ? 90 : 75;
  if (has >= needs) return;
  cta.fail(FindingKind::invalid_operand, where, cta.here(),
           fmt::format("{}{} is an instruction of sm_{}, and the machine an sm_{}",
                       ptx_name(instruction), bytes ? " of bytes" : "", needs, has));
}

std::uint32_t load32(unsigned char const* p) {
  std::uint32_t v = 0;
  std::memcpy(&v, p, 4);
  return v;
}
std::uint32_t load16(unsigned char const* p) {
  std::uint16_t v = 0;
  std::memcpy(&v, p, 2);
  return v;
}

constexpr std::uint32_t variant_of(int count, MatrixForm form) {
  return static_cast<std::uint32_t>(4 * count) + static_cast<std::uint32_t>(form);
}

}  // namespace

void ldmatrix(std::uint32_t* registers, int count, MatrixForm form, std::uint32_t row,
              SourceLocation where) {
  Cta& cta = current_cta();
  Warp& own = cta.current_warp();
  int const lane = cta.current_thread().lane;
  own.operand[lane] = row;
  if (cta.meet(Instruction::ldmatrix, variant_of(count, form), kFullWarp, where)) {
    check_generation(cta, Instruction::ldmatrix, form, where);
    if (cta.counting())
      cta.cluster().observers().matrices_moved(cta, own, Instruction::ldmatrix, count, where);
    static constexpr unsigned char kNobody[16] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                                  0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    bool const bytes = form == MatrixForm::bytes_transposed;
    int const rows_of_matrix = bytes ? 16 : 8;
    unsigned char const* all[32];
    for (int giver = 0; giver < 8 * count; ++giver) {
      std::uint32_t const address = own.operand[giver];
      all[giver] = cta.shared_matrix_row(Instruction::ldmatrix, address, false, form,
                                         giver % rows_of_matrix, where, giver)
                       ? cta.shared().at(address)
                       : kNobody;
    }
    for (int r = 0; r < count; ++r) {
      unsigned char const* const* const rows = all + (bytes ? 16 * (r / 2) : 8 * r);
      for (int l = 0; l < 32; ++l) {
        int const along = l % 4, across = l / 4;
        std::uint32_t& to = own.d[l][r];
        if (form == MatrixForm::plain) {
          to = load32(rows[across] + 4 * along);
        } else if (form == MatrixForm::transposed) {
          to = load16(rows[2 * along] + 2 * across) | load16(rows[2 * along + 1] + 2 * across)
                                                          << 16;
        } else {
          to = 0;
          for (int i = 0; i < 4; ++i)
            to |= std::uint32_t{rows[4 * along + i][across + 8 * (r % 2)]} << 8 * i;
        }
      }
    }
    cta.release(kFullWarp, where, Instruction::ldmatrix);
  }
  std::memcpy(registers, own.d[lane], sizeof(std::uint32_t) * static_cast<std::size_t>(count));
}

void stmatrix(std::uint32_t row, std::uint32_t const* registers, int count, MatrixForm form,
              SourceLocation where) {
  Cta& cta = current_cta();
  Warp& own = cta.current_warp();
  int const lane = cta.current_thread().lane;
  own.operand[lane] = row;
  std::memcpy(own.a[lane], registers, sizeof(std::uint32_t) * static_cast<std::size_t>(count));
  if (!cta.meet(Instruction::stmatrix, variant_of(count, form), kFullWarp, where)) return;
  check_generation(cta, Instruction::stmatrix, form, where);
  if (cta.counting())
    cta.cluster().observers().matrices_moved(cta, own, Instruction::stmatrix, count, where);
  bool const bytes = form == MatrixForm::bytes_transposed;
  for (int matrix = 0; matrix < count; ++matrix) {
    for (int r = 0; r < 8; ++r) {
      unsigned char elements[16];
      for (int c = 0; c < (bytes ? 16 : 8); ++c) {
        std::uint32_t const word = own.a[lane_of_matrix(form, true, r, c)][matrix];
        if (bytes) {
          elements[c] = static_cast<unsigned char>(word >> 8 * (r % 2 + 2 * (c / 8)));
        } else {
          int const half = form == MatrixForm::transposed ? r % 2 : c % 2;
          auto const element = static_cast<std::uint16_t>(word >> 16 * half);
          std::memcpy(elements + 2 * c, &element, 2);
        }
      }
      int const giver = 8 * matrix + r;
      std::uint32_t const address = own.operand[giver];
      if (cta.shared_matrix_row(Instruction::stmatrix, address, true, form, r, where, giver))
        std::memcpy(cta.shared().at(address), elements, 16);
    }
  }
  cta.release(kFullWarp, where, Instruction::stmatrix);
}

std::uint32_t movmatrix(std::uint32_t source, SourceLocation where) {
  Cta& cta = current_cta();
  Warp& own = cta.current_warp();
  int const lane = cta.current_thread().lane;
  own.operand[lane] = source;
  if (cta.meet(Instruction::movmatrix, 0, kFullWarp, where)) {
    for (int l = 0; l < 32; ++l) {
      // Elements l / 4 of rows 2 * (l % 4) and the next one; a row lies in four lanes.
      auto const element = [&](int row) {
        return own.operand[4 * row + l / 8] >> 16 * (l / 4 % 2) & 0xffffu;
      };
      own.result[l] = element(2 * (l % 4)) | element(2 * (l % 4) + 1) << 16;
    }
    cta.release(kFullWarp, where, Instruction::movmatrix);
  }
  return own.result[lane];
}

void mma_sync(WarpMma const& op, void* d, void const* a, void const* b, void const* c,
              SourceLocation where) {
  Cta& cta = current_cta();
  Warp& own = cta.current_warp();
  int const lane = cta.current_thread().lane;
  // The warp's registers are rows, a lane each.
  auto const multiply = [&](auto& of_a, auto& of_b, auto& of_c, auto& of_d, auto&& product) {
    std::memcpy(of_a[lane], a, op.a_bytes);
    std::memcpy(of_b[lane], b, op.b_bytes);
    std::memcpy(of_c[lane], c, op.c_bytes);
    if (cta.meet(Instruction::mma_sync, op.variant, kFullWarp, where)) {
      check_generation(cta, op.spec, where);
      product();
      if (cta.counting() || cta.cluster().timed())
        cta.observers().mma_executed(cta, own, op.spec.m * op.spec.n * op.spec.k, where);
      cta.release(kFullWarp, where, Instruction::mma_sync);
    }
    std::memcpy(d, of_d[lane], op.c_bytes);
  };
  if (op.spec.a == DType::f64) {
    multiply(own.f64_a, own.f64_b, own.f64_c, own.f64_d,
             [&] { mma_sync_warp(op.spec, own.f64_a, own.f64_b, own.f64_c, own.f64_d); });
  } else {
    multiply(own.a, own.b, own.c, own.d,
             [&] { mma_sync_warp(op.spec, cta.generation(), own.a, own.b, own.c, own.d); });
  }
}

}  // namespace tegula::sim
