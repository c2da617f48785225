#pragma once

#include "../kernel.hpp"

namespace tegula::museum {

/// `setmaxnreg.inc` waits until the CTA has the registers: what the warpgroups ask for must fit.
///
/// TileLang gave producers 24 registers a thread and consumers 240. With one producer and two
/// consumers that fits into the register file; with two producers it does not, and the last
/// consumer waits for ever. The same sum went wrong in Helion, and in the question of a CUTLASS
/// user: 232 + 232 + 24 is not 3 times 168.
///
/// Mend: numbers whose sum over the warpgroups fits.
/// Seen in: TileLang, https://github.com/tile-ai/tilelang/pull/2406
/// Seen in: Helion, https://github.com/pytorch/helion/pull/3620
/// Seen in: CUTLASS, https://github.com/NVIDIA/cutlass/issues/2007
/// compute-sanitizer: no: registers
/// ConSan: no: registers
/// CUTLASS: yes: register budget
struct more_registers_than_there_are : WarpgroupKernel<4> {
  static constexpr int min_ctas_per_sm = 1;

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    if (thread_idx() < 256) {
      setmaxnreg_dec<24>();  // two producers
    } else if (p.repaired) {
      setmaxnreg_inc<224>();
    } else {
      setmaxnreg_inc<240>();  // 2 x 24 + 2 x 240 = 528, and a thread of each has 512
    }
  }
};

// Report:
//   04_wgmma/more_registers_than_there_are.hpp:30: kernel more_registers_than_there_are, CTA (0, 0,
//     0): deadlock: warpgroup 3 waits at setmaxnreg (04_wgmma/more_registers_than_there_are.hpp:30)
//     for 14336 registers more, where 12288 of the CTA's 65536 are free; warps 0-11 exited

}  // namespace tegula::museum
