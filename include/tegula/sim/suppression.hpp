#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tegula/sim/report.hpp"

namespace tegula::sim {

/// A finding that is known and accepted: a report counts it and holds it apart (Report::silenced).
/// A finding that ended its cluster cannot be accepted, since nobody knows what the cluster would
/// have done after it.
struct Suppression {
  FindingKind kind;
  /// the end of the source file's path, whole names: "kernel/gemm.hpp"; empty: any
  std::string file;
  int line = 0;        ///< in that file; 0: any
  std::string buffer;  ///< name of the buffer, as in the finding; empty: any
  std::string reason;  ///< why it is accepted; never empty
};

/// Whether the suppression is about the finding.
bool covers(Suppression const& suppression, Finding const& finding);

/// Throws std::invalid_argument for a suppression without a reason, for one that names neither file
/// nor buffer, and for one with a line but no file.
void check(Suppression const& suppression);

/// Reads a JSON array of objects, each with "kind", "reason" and at least one of "file" and
/// "buffer", and "line" if wanted. Throws std::invalid_argument with a sentence for anything else.
std::vector<Suppression> parse_suppressions(std::string_view json);

}  // namespace tegula::sim
