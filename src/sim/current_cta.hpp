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

}  // namespace tegula::sim
