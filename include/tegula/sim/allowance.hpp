#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tegula/sim/report.hpp"

namespace tegula::sim {

/// A finding that is known and accepted: a report counts it and holds it apart (Report::silenced). A finding
/// that ended its cluster cannot be accepted, since nobody knows what the cluster would have done after it.
struct Allowance {
  FindingKind kind;
  std::string file;    ///< the end of the source file's path, whole names: "kernel/gemm.hpp"; empty: any
  int line = 0;        ///< in that file; 0: any
  std::string buffer;  ///< name of the buffer, as in the finding; empty: any
  std::string reason;  ///< why it is accepted; never empty
};

/// Whether the allowance is about the finding.
bool covers(Allowance const& allowance, Finding const& finding);

/// Throws std::invalid_argument for an allowance without a reason, for one that names neither file nor
/// buffer, and for one with a line but no file.
void check(Allowance const& allowance);

/// Reads a JSON array of objects, each with "kind", "reason" and at least one of "file" and "buffer", and
/// "line" if wanted. Throws std::invalid_argument with a sentence for anything else.
std::vector<Allowance> parse_allowances(std::string_view json);

}  // namespace tegula::sim
