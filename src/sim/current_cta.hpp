#pragma once

namespace tegula::sim {

class Cta;

/// The CTA that runs on this host thread, for the length of its run.
class CurrentCta {
 public:
  explicit CurrentCta(Cta& cta);
  ~CurrentCta();
  CurrentCta(CurrentCta const&) = delete;
  CurrentCta& operator=(CurrentCta const&) = delete;
};

/// It, or null outside of a launch.
Cta* running_cta();

}  // namespace tegula::sim
