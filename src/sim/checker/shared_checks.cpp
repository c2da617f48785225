#include <fmt/format.h>

#include <cstring>

#include "checker/checker.hpp"
#include "tegula/io/text.hpp"
#include "values/place.hpp"

/// Loads and stores of shared memory, held against the state of its bytes and against each other.
namespace tegula::sim {

namespace {

/// Whether (byte & mask) == state for all n (1, 2, 4, 8 or 16) bytes of a shadow.
bool all_equal(std::uint8_t const* shadow, int n, std::uint8_t mask, std::uint8_t state) {
  if (n == 16) {
    std::uint64_t words[2];
    std::memcpy(words, shadow, 16);
    std::uint64_t const m = mask * 0x0101010101010101ull;
    std::uint64_t const want = state * 0x0101010101010101ull;
    return (words[0] & m) == want && (words[1] & m) == want;
  }
  for (int i = 0; i < n; ++i) {
    if ((shadow[i] & mask) != state) return false;
  }
  return true;
}

int first_other(std::uint8_t const* shadow, int n, std::uint8_t mask, std::uint8_t state) {
  for (int i = 0; i < n; ++i) {
    if ((shadow[i] & mask) != state) return i;
  }
  return n;
}

}  // namespace

/// Holds an access against the state of its bytes. False where it was reported.
inline bool Checker::check_state(Cta& cta, OfCta& own, SharedAccess const& access) {
  std::uint8_t* const state = own.state.at(access.address);
  std::uint32_t const offset = access.address - kSharedBase;
  bool right = true;
  if (access.write) {
    right = all_equal(state, access.bytes, kNoWrite, 0);
    if (!right) shared_findings(cta, access);
    for (int i = 0; i < access.bytes; ++i) state[i] |= kWritten;
    own.copies.write(offset, static_cast<std::uint32_t>(access.bytes));
  } else {
    right = all_equal(state, access.bytes, kNoRead | kWritten, kWritten);
    if (!right) shared_findings(cta, access);
    own.copies.read(offset, static_cast<std::uint32_t>(access.bytes));
  }
  return right;
}

void Checker::shared_unpoisoned(Cta& cta, std::uint32_t address, std::uint32_t bytes) {
  of(cta).state.mark(address, bytes, kWritten);
}

void Checker::shared_discarded(Cta& cta, std::uint32_t address, std::uint32_t bytes,
                               SourceLocation where) {
  if (races_)
    of(cta).shadow.discard(cta.current_thread().agent, address - kSharedBase, bytes,
                           site(Instruction::cp_async_bulk_tensor, where));
}

void Checker::shared_proxy_fenced(Cta& cta, SourceLocation where) {
  agents_.causality().fence_shared_proxy(cta.current_thread().agent);
  of(cta.current_thread()).proxy_fence = where;
}

/// An atomic, or a strong load or store, held against the state of its bytes.
bool Checker::check_strong(Cta& cta, SharedAccess const& access) {
  OfCta& own = of(cta);
  SharedAccess as_read = access, as_write = access;
  as_read.write = false;
  as_write.write = true;
  return (!strong_reads(access.instruction) || check_state(cta, own, as_read)) &&
         (!strong_writes(access.instruction) || check_state(cta, own, as_write));
}

/// Likewise, held against other accesses, some of which it may meet.
void Checker::strong_shared_access(Cta& cta, StrongAccess const& access) {
  auto const* const at = static_cast<unsigned char const*>(access.address);
  for (int rank = 0; rank < cta.cluster().ctas(); ++rank) {
    Cta& owner = cta.cluster().cta(rank);
    auto const offset = static_cast<std::size_t>(at - owner.shared().data());
    if (offset >= owner.shared().bytes()) continue;
    auto const from = static_cast<std::uint32_t>(offset);
    Thread const& thread = cta.current_thread();
    SharedAccess const there{access.instruction,
                             kSharedBase + from,
                             access.bytes,
                             strong_writes(access.instruction),
                             access.where,
                             thread.lane,
                             {access.scope, access.bytes}};
    Conflict conflict;
    if (!of(owner).shadow.strong(thread.agent, from, static_cast<std::uint32_t>(access.bytes),
                                 site(owner, there), {access.reads, access.modifies, access.writes},
                                 conflict) &&
        of(thread).strong_right)
      generic_race(owner, there, conflict);
    return;
  }
}

/// A plain load or store.
void Checker::plain_shared_access(Cta& cta, SharedAccess const& access) {
  OfCta& own = of(cta);
  bool const right = check_state(cta, own, access);
  if (!races_) return;
  std::uint32_t const offset = access.address - kSharedBase;
  std::uint32_t const n = static_cast<std::uint32_t>(access.bytes);
  std::uint16_t const by = site(access.instruction, access.where);
  Conflict conflict;
  bool const ordered = access.write
                           ? own.shadow.write(agent(cta, access.lane), offset, n, by, conflict)
                           : own.shadow.read(agent(cta, access.lane), offset, n, by, conflict);
  if (!ordered && right) [[unlikely]]
    generic_race(cta, access, conflict);
}

void Checker::shared_accessed(Cta& cta, SharedAccess const& access) {
  Thread& thread = cta.current_thread();
  if (is_strong(access.instruction)) [[unlikely]] {
    of(thread).strong_right = check_strong(cta, access);
  } else {
    plain_shared_access(cta, access);
  }
  if (thread.cta != &cta) [[unlikely]]
    note_access(of(cta).peer_accesses,
                {access.instruction, access.where, access.address, thread.cta->rank(),
                 thread.index / 32, thread.lane, thread.cta->current_warp().cluster_arrivals + 1,
                 -1, access.write, thread.agent - thread.lane},
                thread.lane, agents_.causality().now());
}

void Checker::matrix_row_accessed(Cta& cta, SharedAccess const& access, MatrixForm form, int row) {
  OfCta& own = of(cta);
  bool const right = check_state(cta, own, access);
  if (!races_) return;
  RaceShadow& shadow = own.shadow;
  std::uint32_t const offset = access.address - kSharedBase;
  std::uint16_t const by = site(access.instruction, access.where);
  Conflict conflict;
  bool ordered = true;
  if (form == MatrixForm::plain && access.write) {
    int const lanes[4] = {4 * row, 4 * row + 1, 4 * row + 2, 4 * row + 3};
    ordered = shadow.write_row(agent(cta, 0), offset, lanes, by, conflict);
  } else if (form != MatrixForm::bytes_transposed && !access.write) {
    // Word w of a row is for lane 4 row + w; or its halves, columns of the matrix, for two lanes.
    std::uint32_t lanes[4] = {};
    for (int c = 0; c < 8; ++c) lanes[c / 2] |= 1u << lane_of_matrix(form, false, row, c);
    ordered = shadow.read_row(agent(cta, 0), offset, lanes, by, conflict);
  } else {
    int const columns = form == MatrixForm::bytes_transposed ? 16 : 8;
    auto const bytes = static_cast<std::uint32_t>(16 / columns);
    for (int c = 0; c < columns; ++c) {
      Conflict other;
      int const lane = agent(cta, lane_of_matrix(form, access.write, row, c));
      std::uint32_t const at = offset + bytes * static_cast<std::uint32_t>(c);
      bool const right_order = access.write ? shadow.write(lane, at, bytes, by, other)
                                            : shadow.read(lane, at, bytes, by, other);
      if (!right_order && ordered) {
        ordered = false;
        conflict = other;
      }
    }
  }
  if (!ordered && right) [[unlikely]]
    generic_race(cta, access, conflict);
}

void Checker::shared_findings(Cta& cta, SharedAccess const& access) {
  Instruction const instruction = access.instruction;
  std::uint32_t const address = access.address;
  int const bytes = access.bytes;
  bool const write = access.write;
  SourceLocation const where = access.where;
  int const lane = access.lane;
  std::uint8_t const* const state = of(cta).state.at(address);
  int const flying = first_other(state, bytes, kInFlight, 0);
  if (flying < bytes) {
    std::uint32_t const at = address + static_cast<std::uint32_t>(flying);
    Pending const pending = pending_write(cta, at);
    cta.report(write ? FindingKind::async_overwrite : FindingKind::async_read_early, where,
               cta.here(lane), cta.buffer_name(at), cta.shared_place(at),
               fmt::format("{} {} {} while a {} into it is in flight{}", ptx_name(instruction),
                           write ? "writes" : "reads", cta.shared_place(at),
                           ptx_name(pending.instruction), pending.issuer),
               {pending.where, pending.who, pending.order});
    return;
  }
  int const being_read = first_other(state, bytes, kBeingRead, 0);
  if (write && being_read < bytes) {
    std::uint32_t const at = address + static_cast<std::uint32_t>(being_read);
    InFlight const* const reader = cta.in_flight().reader_of(cta.rank(), at);
    cta.report(
        FindingKind::async_overwrite, where, cta.here(lane), cta.buffer_name(at),
        cta.shared_place(at),
        fmt::format("{} writes {} while a {} that reads it is in flight{}", ptx_name(instruction),
                    cta.shared_place(at), ptx_name(reader->instruction), issuer_text(*reader)),
        {reader->where,
         {reader->cta, reader->thread / 32, reader->thread % 32},
         order_after_read(cta, *reader)});
    return;
  }
  int const in_mbarrier = first_other(state, bytes, kMbarrier, 0);
  if (in_mbarrier < bytes) {
    std::uint32_t const at = address + static_cast<std::uint32_t>(in_mbarrier);
    MbarrierState const* const mbarrier = cta.mbarrier_at(at / 8 * 8);
    cta.report(
        FindingKind::mbarrier_misuse, where, cta.here(lane), cta.buffer_name(at),
        cta.shared_place(at),
        fmt::format("{} {} {}, which is an mbarrier ({}): only mbarrier instructions may touch it",
                    ptx_name(instruction), write ? "writes" : "reads", cta.shared_place(at),
                    place_text(mbarrier->init)),
        mbarrier->init);
    return;
  }
  int const unwritten = first_other(state, bytes, kWritten, kWritten);
  if (!write && unwritten < bytes) {
    std::uint32_t const at = address + static_cast<std::uint32_t>(unwritten);
    cta.report(FindingKind::uninitialized_read, where, cta.here(lane), cta.buffer_name(at),
               cta.shared_place(at),
               fmt::format("{} reads {}, which nobody has written", ptx_name(instruction),
                           cta.shared_place(at)));
  }
}

/// What would order a write by the current thread after an operation in flight that reads the byte.
/// Where nothing says that the operation is to come first, also what would order it after.
std::string Checker::order_after_read(Cta const& cta, InFlight const& reader) {
  SharedRange const& completes = reader.mbarrier;
  Cta& owner = cta.cluster().cta(completes.cta);
  MbarrierState const* const mbarrier =
      completes.bytes == 0 ? nullptr : owner.mbarrier_at(completes.address);
  std::string const order = mbarrier == nullptr ? cta.in_flight().order_text(reader, true)
                                                : order_of_phase(cta, completes, mbarrier->phase,
                                                                 reader.remembered.phase, "");
  Thread const& self = cta.current_thread();
  Thread const& issuer = cta.cluster().cta(reader.cta).thread(reader.thread);
  bool const together =
      reader.by_warpgroup() && self.cta == issuer.cta && self.index / 128 == issuer.index / 128;
  if (!races_ || together ||
      agents_.causality().known(self.agent, issuer.agent,
                                static_cast<Time>(reader.remembered.issued)))
    return order;
  return fmt::format("{}; where the {} is to read what is written, a barrier between the two would",
                     order, ptx_name(reader.instruction));
}

Checker::Pending Checker::pending_write(Cta const& cta, std::uint32_t address) {
  InFlight const* const operation = cta.in_flight().writer_of(cta.rank(), address);
  if (operation != nullptr) {
    SharedRange const& completes = operation->mbarrier;
    MbarrierState const* const mbarrier =
        completes.bytes == 0 ? nullptr
                             : cta.cluster().cta(completes.cta).mbarrier_at(completes.address);
    return {operation->instruction,
            operation->where,
            issuer_text(*operation),
            {operation->cta, operation->thread / 32, operation->thread % 32},
            mbarrier == nullptr
                ? cta.in_flight().order_text(*operation, false)
                : order_of_phase(cta, completes, mbarrier->phase, operation->remembered.phase, "")};
  }
  Thread const* issuer = nullptr;
  AsyncCopy const* const copy = cta.copy_into(address, &issuer);
  if (copy == nullptr) return {Instruction::cp_async, {}, "", {}, ""};
  char const* const commit =
      issuer->async.committed(*copy) ? "" : "a cp.async.commit_group after it and ";
  char const* const waits = issuer == &cta.current_thread()
                                ? "that covers it"
                                : "by the thread that issued it, and then a cta::sync,";
  return {
      Instruction::cp_async,
      copy->where,
      fmt::format(" that warp {} lane {} issued ({}) and has not waited for", issuer->index / 32,
                  issuer->lane, place_text(copy->where)),
      {cta.rank(), issuer->index / 32, issuer->lane},
      copy->arrives
          ? "a wait for the mbarrier of the cp.async.mbarrier.arrive that follows it, for a phase that counts that arrival, would order them"
      : issuer->async.left_by_wait(*copy)
          ? fmt::format(
                "its cp.async.wait_group ({}) leaves the latest {} in flight, and this is of {}: a "
                "cp.async.commit_group for each stage, also where nothing is copied, or a cp.async.wait_group {} would "
                "order them",
                place_text(issuer->async.waited.where),
                io::counted(issuer->async.waited.left, "group"),
                issuer->async.waited.left == 1 ? "it" : "them", waits)
          : fmt::format("{}a cp.async.wait_group {} would order them", commit, waits)};
}

}  // namespace tegula::sim
