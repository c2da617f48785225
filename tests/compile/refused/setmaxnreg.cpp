// A number of registers that is no multiple of 8.
// prints: setmaxnreg.dec takes a multiple of 8 from 24 to 256
// prints: 20

#include "tegula/arch/setmaxnreg.hpp"

TEGULA_DEVICE void give_up() { tegula::setmaxnreg_dec<20>(); }
