#pragma once

namespace tegula::sim {

class Cta;

/// The CTA whose thread runs on this host thread, or null outside of a launch.
Cta* running_cta();
void set_running_cta(Cta* cta);

/// It; throws std::logic_error outside of a launch.
Cta& this_cta();

}  // namespace tegula::sim
