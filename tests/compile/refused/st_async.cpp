// A store of a size that st.async does not have.
// prints: st.async stores 4, 8 or 16 bytes

#include "tegula/arch/cluster.hpp"

TEGULA_DEVICE void send(tegula::SharedAddr remote, tegula::SharedAddr mbarrier) {
  tegula::st_async(remote, std::uint16_t{1}, mbarrier);
}
