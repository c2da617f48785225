#include "page.hpp"

#include <algorithm>
#include <sstream>
#include <string_view>
#include <vector>

#include "../broken/source.hpp"
#include "museum.hpp"

namespace tegula::museum {

namespace {

using broken::Chapter;
using broken::Exhibit;
using broken::Source;

constexpr std::string_view kIntroduction = R"(# The museum

Bugs of shipped GPU kernels, found in public, each written anew as a kernel of a few lines. It is a
course in asynchronous programming by its accidents: the rooms go from threads that share memory to
tensor cores, clusters and grids that overlap. Each piece has its story, a link to the thread where
it was found, the kernel, what tegula's [checker](checker.md) reports, and the mend.

The kernels are ours and as short as the mistake allows; no line is the projects'. Where
`p.repaired` is true a kernel does what it should, and the checker is silent. [The
gallery](../examples/broken) has a kernel for each thing that the checker finds; here is what people
ran into.

After a build, `build/host/examples/museum/museum` lists, shows and tests the pieces; it also writes
this page, and a test holds the page to it:

```
museum --list                                    # every piece with the rule that it breaks
museum flag_before_a_tma_load                    # one
museum --all --test                              # the reports as in the files, and nothing once it is mended
museum --all --write && museum --page --write    # write the reports into the files, then this page
```
)";

constexpr std::string_view kLegend =
    R"(- **tegula** is measured: the kinds of finding at the piece's schedule (the default one, unless its
  lines say otherwise), and at how many of 36 schedules something is found. Fewer than 36: another
  schedule is harmless, and [every order](checker.md#every-order) has to be tried to be sure.
  "Nothing": the checker misses it.
- **The other columns are by documentation.** None of these tools has run these kernels:
  compute-sanitizer needs a GPU, and there was none when this page was written; the two others check
  programs of their own languages. What compute-sanitizer finds of 185 mutants of tegula's own
  kernels was measured on an H100: [the same on a GPU](checker.md#the-same-on-a-gpu).
- [compute-sanitizer](https://docs.nvidia.com/compute-sanitizer/ComputeSanitizer) runs the compiled
  // contextqmd.com/libraries/flash-attention/versions/2.8.3/pages/AI/RACECHECK_TMA_HAZARD)),
  kernel on a GPU and sees what that run does. *racecheck*: hazards between threads in shared
  memory; not in global memory, and nothing of proxies or scopes. *synccheck*: barriers that threads
  reach in parts, or use wrongly. *memcheck*: accesses out of bounds or misaligned, and exceptions
  of the hardware. *initcheck*: reads of memory that nobody has written. "As a deadlock" is
  racecheck's search for mbarrier waits that never end, which is off by default. What a tensor copy
  writes, and what a multiply reads, racecheck gives to no thread ([FlashAttention's
  notes](https:
  // github.com/triton-lang/triton/blob/main/include/triton/Dialect/TritonInstrument/IR/TritonInstrument.md)
  so that it finds no hazard there.
- [ConSan](https:
  // docs.nvidia.com/cutlass/latest/media/docs/pythonDSL/ts_general/ts_introduction.html)
  instruments Triton's intermediate code and runs on a GPU. A partition of warps is one thread to
  it: what goes wrong among the threads of one ("inside a partition") the compiler's own barriers
  are to prevent. It models shared and tensor memory, mbarriers, commit groups and the fence between
  the proxies, and leaves global memory to another tool.
- [CUTLASS's Task
  Scheduling](https:
  checks, when a kernel of its DSL is compiled, the schedule of tasks that the author declares:
  deadlocks over every interleaving, aliasing of buffers, counts and bytes of barriers, registers.
  It generates the barriers, so some mistakes cannot be written; the body of a task ("inside a work
  method") it does not look into.

Some public bugs have no piece here, because the simulated machine has not what they are made of:

- tensor maps that a kernel changes while copies still use them
  ([DeepGEMM](https://github.com/deepseek-ai/DeepGEMM/pull/343),
  [CUTLASS](https://github.com/NVIDIA/cutlass/issues/2162));
- a grid that lets its dependents start before it has written, where they do not wait for its end
  ([TensorRT-LLM](https://github.com/NVIDIA/TensorRT-LLM/pull/15729)): launches run one after
  another here, and only the missing wait is found;
- tensor memory ([CUTLASS](https://github.com/NVIDIA/cutlass/issues/3435)).
)";

/// What a room is about, before its pieces.
std::string_view about_room(std::string_view folder) {
  if (folder == "01_threads")
    return R"(Threads of a CTA run in no order, lanes of a warp included. What one writes and another reads needs
a barrier between the two that *both* pass: `cta::sync` (`__syncthreads()`) for all warps, a named
barrier for some, `warp::sync` for lanes. A loop has two such pairs: the reads come after the writes
of this round, and before the writes of the next. A barrier counts arrivals. It does not ask who
arrives, nor at which line.)";
  if (folder == "02_cp_async")
    return R"(`cp.async` (Ampere) is a copy that goes on after its instruction. Its thread commits copies in
groups and waits until all groups but the latest N have landed. The wait is the thread's own. So
there are three steps between a copy and another thread's read: commit, wait, barrier. Until the
wait the destination belongs to the copy, whether anybody wants what it brings or not.)";
  if (folder == "03_tma")
    return R"(TMA (Hopper) is an engine. One thread asks for a box; the bytes arrive and are counted by an
mbarrier, whose phase is complete when the expected arrivals and bytes have come. Who waits names
the parity of a phase; the phase before the current one passes at once. A ring has such a barrier
for each full stage and one for each empty stage. Stores are counted otherwise, in groups of the
thread that issues them, with a wait for "has been read" and one for "has been written".

The engine reads and writes through the *asynchronous proxy*, threads through the generic one.
Barriers order within a proxy; from a thread's write to the engine's access there must also be a
`fence.proxy.async`.)";
  if (folder == "04_wgmma")
    return R"(`wgmma` (Hopper) multiplies while its warpgroup goes on. It reads shared memory through the
asynchronous proxy, and owns its registers until its group has been waited for. The wait is the
warpgroup's: nobody else knows that the operands have been read until somebody tells them.)";
  if (folder == "05_clusters")
    return R"(CTAs of a cluster run at the same time and reach each other's shared memory. They do not begin, or
end, at the same time: there is a barrier of the cluster for both. What crosses from CTA to CTA is
released and acquired at the scope of the cluster, where CTAs alone get along with their own.)";
  if (folder == "06_grids")
    return R"(CTAs of a grid share global memory alone. From one to another leads a chain: the writes, a barrier
of the CTA, a fence of the GPU, an atomic; an atomic that sees it, a fence, a barrier, the reads.
Grids follow one another, unless they are launched to overlap.)";
  return {};
}

/// The values of the lines "KEY: value" of the comment.
std::vector<std::string> values(Source const& source, std::string_view key) {
  std::vector<std::string> found;
  for (std::string const& line : source.about) {
    if (line.starts_with(key) && line.substr(key.size()).starts_with(": "))
      found.push_back(line.substr(key.size() + 2));
  }
  return found;
}

std::string value(Source const& source, std::string_view key) {
  std::vector<std::string> const found = values(source, key);
  if (found.size() != 1)
    throw std::runtime_error("a piece's comment has " + std::to_string(found.size()) + " lines \"" +
                             std::string(key) + ": ...\" where it should have one");
  return found[0];
}

/// "PROJECT, https://..." as a link; between them there may be words: "PROJECT, the
/// report: https://...".
std::string link(std::string const& seen) {
  std::size_t const begin = seen.find("https://");
  std::string text = seen.substr(0, begin);
  while (!text.empty() && (text.back() == ' ' || text.back() == ',' || text.back() == ':'))
    text.pop_back();
  return "[" + text + "](" + seen.substr(begin) + ")";
}

/// Of all schedules, the number of those at which something is found.
std::size_t found_at(Exhibit const& exhibit) {
  std::size_t found = 0;
  for (broken::Schedule const& schedule : broken::schedules())
    found += !broken::report_at(exhibit, /*repaired=*/false, schedule).ok();
  return found;
}

/// A row of the table.
std::string row(Exhibit const& exhibit, Source const& source) {
  std::string const kinds = broken::kinds_of(exhibit.run(exhibit.options, /*repaired=*/false));
  std::string const seen = link(values(source, "Seen in").at(0));
  return "| [`" + exhibit.name + "`](#" + exhibit.name + ") | " + seen + " | " +
         (kinds.empty() ? "nothing" : kinds) + " (" + std::to_string(found_at(exhibit)) + ") | " +
         value(source, "compute-sanitizer") + " | " + value(source, "ConSan") + " | " +
         value(source, "CUTLASS") + " |\n";
}

/// The paragraphs of the comment between the rule and the lines "KEY: value".
std::string story(Source const& source) {
  auto const begin = std::find(source.about.begin(), source.about.end(), "");
  auto const end = std::find_if(begin, source.about.end(),
                                [](std::string const& line) { return line.starts_with("Mend: "); });
  std::string text;
  for (auto line = begin + 1; line < end; ++line) text += *line + "\n";
  return text;
}

/// A piece: rule, story, links, kernel, report, mend.
std::string section(Exhibit const& exhibit, Source const& source) {
  std::ostringstream out;
  out << "### " << exhibit.name << "\n\n**" << source.rule << "**\n\n"
      << story(source) << "Seen in: ";
  std::vector<std::string> const seen = values(source, "Seen in");
  for (std::size_t i = 0; i < seen.size(); ++i) out << (i == 0 ? "" : "; ") << link(seen[i]);
  out << ".\n\n```\n";
  int number = source.first_line;
  for (std::string const& line : source.lines) {
    std::string const digits = std::to_string(number++);
    out << std::string(4 - digits.size(), ' ') << digits << (line.empty() ? "" : "  ") << line
        << "\n";
  }
  out << "\n";
  if (source.report_lines.empty()) out << "(nothing is found)\n";
  for (std::string const& line : source.report_lines) out << line << "\n";
  out << "```\n\n*Mend:* " << value(source, "Mend") << "\n";
  return out.str();
}

}  // namespace

std::string page() {
  broken::Gallery const& museum = gallery();
  std::ostringstream rows, sections;
  for (Chapter const& room : museum.chapters) {
    sections << "\n## " << room.title << "\n\n" << about_room(room.folder) << "\n";
    for (Exhibit const& exhibit : room.exhibits) {
      Source const source = broken::read_source(museum.folder / room.folder, exhibit.name);
      rows << row(exhibit, source);
      sections << "\n" << section(exhibit, source);
    }
  }
  std::ostringstream out;
  out << kIntroduction << "\n## What finds what\n\n"
      << "| piece | seen in | tegula | compute-sanitizer | ConSan | CUTLASS |\n"
      << "| --- | --- | --- | --- | --- | --- |\n"
      << rows.str() << "\n"
      << kLegend << sections.str();
  return out.str();
}

}  // namespace tegula::museum
