#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "checker/agents.hpp"
#include "checker/causality.hpp"
#include "checker/global_conflicts.hpp"
#include "checker/global_order.hpp"
#include "checker/global_shadow.hpp"
#include "machine/observers.hpp"
#include "tegula/arch/scope.hpp"
#include "tegula/arch/source_location.hpp"
#include "values/instruction.hpp"

namespace tegula::sim {

class Cluster;
class Cta;

/// Holds what the threads of one cluster do to global memory against each other, and keeps what is
/// to be held against other clusters when all are done.
class GlobalRaces {
 public:
  explicit GlobalRaces(Agents& agents) : agents_(agents) {}

  /// A cluster starts. `order` is the launch's; null: nothing is looked for.
  void start(Cluster& cluster, GlobalOrder* order);
  bool on() const { return on_; }

  /// An access by the current thread that is not strong. False where it is found to race.
  bool access(Instruction instruction, GlobalAccess access, void const* address, std::size_t bytes,
              SourceLocation where);
  /// A fence by the current thread.
  void fence(Scope scope, SourceLocation where);
  /// A strong access by the current thread.
  void strong(StrongAccess const& access);

  /// Accesses by an operation that the current thread issues and that somebody waits for later.
  struct Pending {
    std::uint32_t site = 0;
    std::uint32_t time = 0;  ///< of the issue
  };
  Pending issue(Instruction instruction, GlobalAccess access, SourceLocation where);
  /// `agent`: who it is done for, where that is known when it is issued: an mbarrier.
  void touch(Pending const& operation, void const* address, std::size_t bytes,
             std::uint32_t agent = GlobalShadow::kNobody);
  /// The current thread has waited for the operation.
  void settle(Pending const& operation, void const* address, std::size_t bytes);

  /// ", which atom of warp 0 lane 0 (kernel/a.hpp:7) has changed last": memory that somebody reads
  /// again and again.
  std::string last_change(void const* address) const;
  /// The same as a site of this cluster; null where nobody of it did.
  GlobalSite const* last_changed_by(void const* address) const {
    return shadow_.last_change(reinterpret_cast<std::uintptr_t>(address));
  }

  /// Strong accesses of the cluster so far that might have come in another order:
  /// Report::open_choices.
  std::int64_t open_choices() const { return open_choices_; }

  /// The cluster is done.
  ClusterLog finish();

 private:
  /// What the value of a word tells the threads of each CTA that read it, by accesses of its CTA's
  /// scope or a wider one; and those of all the cluster, by accesses of a wider one.
  struct Told {
    std::vector<Published> of_ctas;
    Published wide;
  };
  /// What strong accesses to a word have released, after fences or by themselves. A store ends what
  /// the value told before, an atomic adds to it: PTX ISA, "Observation Order".
  struct Word {
    Told told;
    int bytes = 0;  ///< of the access that wrote it
    /// By thread, what its st.release have told: whatever it stores there later tells that again.
    std::map<int, Told> released;
    struct Latest {
      int agent = -1;
      Time time = 0;
      bool writes = false;
    } latest;
  };
  GlobalActor actor();
  CausalPast past(GlobalActor const& who);
  /// The thread may have acquired that the grids before this one are complete.
  void look_for_grids(GlobalActor const& who);
  /// The thread has acquired what other clusters have released: what comes before that on
  /// both ways.
  void has_acquired(GlobalActor const& who);
  /// What the threads of the cluster tell each other by the access: by what it reads, and by what
  /// it writes.
  void learn(Word& word, StrongAccess const& access, GlobalActor const& who);
  void tell(Word& word, StrongAccess const& access, GlobalActor const& who);
  bool is_open(Word& word, StrongAccess const& access, GlobalActor const& who) const;
  bool note(std::uint32_t site, void const* address, std::size_t bytes, GlobalActor const& who);

  Agents& agents_;
  Cluster* cluster_ = nullptr;
  bool on_ = false;
  bool strict_ = false;
  bool cooperative_ = false;
  std::int64_t index_ = 0;
  std::int64_t open_choices_ = 0;
  GlobalShadow shadow_;
  ClusterOrder order_;
  std::unordered_map<std::uintptr_t, Word> words_;  ///< by address
};

}  // namespace tegula::sim
