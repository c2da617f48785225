// Eight-bit elements that are contiguous along n.
// prints: refuse("wgmma"
// prints: only operands of 16-bit elements may be contiguous along m or n

#include "tegula/arch/wgmma.hpp"

using namespace tegula;

using Refused =
    MmaRegisters<warpgroup_mma(DType::e4m3, DType::e4m3, DType::f32, 128, Major::k, Major::mn)>::D;
