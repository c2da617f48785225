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

}  // namespace

void ldmatrix(std::uint32_t* registers, int count, bool transpose, std::uint32_t row,
              SourceLocation where) {
  Cta& cta = current_cta();
  Warp& own = cta.current_warp();
  int const lane = cta.current_thread().lane;
  own.operand[lane] = row;
  if (cta.meet(Instruction::ldmatrix, static_cast<std::uint32_t>(2 * count + (transpose ? 1 : 0)),
               kFullWarp, where)) {
    if (cta.counting())
      cta.cluster().observers().matrices_moved(cta, own, Instruction::ldmatrix, count, where);
    for (int matrix = 0; matrix < count; ++matrix) {
      unsigned char const* rows[8];
      static constexpr unsigned char kNobody[16] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                                    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
      for (int r = 0; r < 8; ++r) {
        int const giver = 8 * matrix + r;
        std::uint32_t const address = own.operand[giver];
        if (!cta.shared_matrix_row(Instruction::ldmatrix, address, false, transpose, r, where,
                                   giver)) {
          rows[r] = kNobody;
          continue;
        }
        rows[r] = cta.shared().at(address);
      }
      for (int l = 0; l < 32; ++l) {
        own.d[l][matrix] = transpose ? load16(rows[2 * (l % 4)] + 2 * (l / 4)) |
                                           load16(rows[2 * (l % 4) + 1] + 2 * (l / 4)) << 16
                                     : load32(rows[l / 4] + 4 * (l % 4));
      }
    }
    cta.release(kFullWarp, where, Instruction::ldmatrix);
  }
  std::memcpy(registers, own.d[lane], sizeof(std::uint32_t) * static_cast<std::size_t>(count));
}

void stmatrix(std::uint32_t row, std::uint32_t const* registers, int count, bool transpose,
              SourceLocation where) {
  Cta& cta = current_cta();
  Warp& own = cta.current_warp();
  int const lane = cta.current_thread().lane;
  own.operand[lane] = row;
  std::memcpy(own.a[lane], registers, sizeof(std::uint32_t) * static_cast<std::size_t>(count));
  if (!cta.meet(Instruction::stmatrix, static_cast<std::uint32_t>(2 * count + (transpose ? 1 : 0)),
                kFullWarp, where))
    return;
  if (cta.counting())
    cta.cluster().observers().matrices_moved(cta, own, Instruction::stmatrix, count, where);
  for (int matrix = 0; matrix < count; ++matrix) {
    for (int r = 0; r < 8; ++r) {
      std::uint16_t elements[8];
      for (int c = 0; c < 8; ++c) {
        int const holder = transpose ? 4 * c + r / 2 : 4 * r + c / 2;
        int const half = transpose ? r % 2 : c % 2;
        elements[c] = static_cast<std::uint16_t>(own.a[holder][matrix] >> 16 * half);
      }
      int const giver = 8 * matrix + r;
      std::uint32_t const address = own.operand[giver];
      if (cta.shared_matrix_row(Instruction::stmatrix, address, true, transpose, r, where, giver))
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
