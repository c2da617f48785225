// Eight-bit elements that are contiguous along n.
// prints: refuse("wgmma"
// prints: only operands of 16-bit elements may be contiguous along m or n

#include "tegula/arch/wgmma.hpp"

using namespace tegula;

using Refused = WgmmaRegisters<WgmmaConfig{.type = WgmmaType::e4m3_e4m3, .n = 128, .b_mn_major = true}>::D;
