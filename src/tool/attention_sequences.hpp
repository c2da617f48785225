#pragma once

/// Sequences of their own lengths and paged keys, as `tegula attention` makes them from its
/// options.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "command_line.hpp"
#include "tegula/device/arguments.hpp"
#include "tegula/device/buffer.hpp"

namespace tegula::tool {

struct SequenceOptions {
  std::optional<std::string> lengths_q, lengths_k;  ///< "130,0,5"
  std::optional<std::string> append;                ///< new keys of each sequence, likewise
  int page_size = 0;                                ///< 0: keys are not in pages

  bool given() const { return lengths_q || lengths_k || append || page_size > 0; }
};

/// Accepts the sizes that pages of keys may have.
Accepted page_size();

/// The lengths in an option's text. Throws argument_error for what is no list of numbers from 0 to
/// kMaxExtent, separated by commas, of `least` to kMaxExtent in all.
std::vector<std::int64_t> parse_lengths(char const* option, std::string const& text,
                                        std::int64_t least = 1);

/// Tables of lengths and pages in host memory.
class Sequences {
 public:
  /// Of sequences: how many queries, keys and new keys each has. Where one is empty, all have the
  /// batch's, and no new keys.
  struct Lengths {
    std::vector<std::int64_t> queries, keys, new_keys;
  };

  Sequences() = default;
  /// Queries and keys are packed where both are given and keys are not in pages; pages are
  /// dealt out by the seed. Throws argument_error for more pages than a table is made of.
  Sequences(Lengths const& lengths, std::int64_t batch, std::int64_t seq_k, int page_size,
            std::uint64_t seed);

  /// Puts the tables to the arguments, which are valid as long as this object.
  void put(AttentionArguments& a) const;

  /// Queries and keys of a sequence of `a`, new ones among them, which put() has filled in.
  static std::int64_t queries(AttentionArguments const& a, std::int64_t batch);
  static std::int64_t keys(AttentionArguments const& a, std::int64_t batch);
  /// Offset of a query's row in O but for its head; and place of a query in the log-sum-exp.
  static std::int64_t offset(AttentionArguments const& a, std::int64_t batch, std::int64_t query);
  static std::int64_t lse_place(AttentionArguments const& a, std::int64_t batch, std::int64_t head,
                                std::int64_t query);

 private:
  friend class UploadedSequences;
  std::vector<std::int32_t> cu_seqlens_q_, cu_seqlens_k_, cu_seqlens_new_, seqused_k_, page_table_;
  std::int64_t pages_ = 0, most_new_ = 0;
  int page_size_ = 0;
};

/// The same tables on a machine.
class UploadedSequences {
 public:
  UploadedSequences(Machine const& machine, Sequences const& sequences);
  void put(AttentionArguments& a) const;

 private:
  Buffer<std::int32_t> cu_seqlens_q_, cu_seqlens_k_, cu_seqlens_new_, seqused_k_, page_table_;
};

}  // namespace tegula::tool
