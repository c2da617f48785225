#include "attention_sequences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "options.hpp"
#include "tegula/device/error.hpp"
#include "tegula/io/text.hpp"

namespace tegula::tool {
namespace {

std::vector<std::int32_t> cumulative(std::vector<std::int64_t> const& lengths) {
  std::vector<std::int32_t> sums = {0};
  for (std::int64_t const length : lengths)
    sums.push_back(static_cast<std::int32_t>(sums.back() + length));
  return sums;
}

std::int32_t const* there(std::vector<std::int32_t> const& table) {
  return table.empty() ? nullptr : table.data();
}
std::int32_t const* there(Buffer<std::int32_t> const& table) {
  return table.size() == 0 ? nullptr : table.data();
}

}  // namespace

Accepted page_size() {
  std::string const sizes = "16, 32, 64 or a multiple of 128";
  return {[=](std::string const& text) {
            std::int64_t const size = spelled<std::int64_t>(text).value_or(0);
            if (size > 0 && size <= kMaxExtent &&
                (size == 16 || size == 32 || size == 64 || size % 128 == 0))
              return std::string();
            return fmt::format("{} is not {} up to {}", io::in_quotes(text), sizes, kMaxExtent);
          },
          "16,32,64,128,256,.."};
}

std::vector<std::int64_t> parse_lengths(char const* option, std::string const& text,
                                        std::int64_t least) {
  if (auto const lengths = read_list(text, least, kMaxExtent)) return *lengths;
  throw argument_error(
      fmt::format("{} is {}; it must be lengths separated by commas, as 130,0,5, at least {} and "
                  "at most {} in all.",
                  option, io::in_quotes(text), least, kMaxExtent));
}

Sequences::Sequences(Lengths const& lengths, std::int64_t batch, std::int64_t seq_k, int page_size,
                     std::uint64_t seed)
    : page_size_(page_size) {
  auto const& [queries, keys, new_keys] = lengths;
  if (!new_keys.empty()) {
    cu_seqlens_new_ = cumulative(new_keys);
    most_new_ = *std::max_element(new_keys.begin(), new_keys.end());
  }
  if (!queries.empty()) cu_seqlens_q_ = cumulative(queries);
  if (!keys.empty() && !queries.empty() && page_size == 0 && new_keys.empty())
    cu_seqlens_k_ = cumulative(keys);
  else if (!keys.empty())
    seqused_k_.assign(keys.begin(), keys.end());
  if (page_size == 0) return;
  pages_ = batch * ((seq_k + page_size - 1) / page_size);
  constexpr std::int64_t kMostPages = std::int64_t{1} << 25;
  if (pages_ > kMostPages)
    throw argument_error(
        fmt::format("--page-size is {}, and {} of {} take {}; they must be at most {}.", page_size,
                    io::counted(batch, "sequence"), io::counted(seq_k, "key"),
                    io::counted(pages_, "page"), kMostPages));
  page_table_.resize(static_cast<std::size_t>(pages_));
  for (std::size_t i = 0; i < page_table_.size(); ++i)
    page_table_[i] = static_cast<std::int32_t>(i);
  std::shuffle(page_table_.begin(), page_table_.end(), std::mt19937_64(seed));
}

void Sequences::put(AttentionArguments& a) const {
  a.cu_seqlens_q = there(cu_seqlens_q_), a.cu_seqlens_k = there(cu_seqlens_k_);
  a.seqused_k = there(seqused_k_), a.page_table = there(page_table_);
  if (!cu_seqlens_q_.empty()) a.total_q = cu_seqlens_q_.back();
  if (!cu_seqlens_k_.empty()) a.total_k = cu_seqlens_k_.back();
  a.pages = pages_, a.page_size = page_size_;
  a.cu_seqlens_new = there(cu_seqlens_new_), a.seq_new = most_new_;
  if (!cu_seqlens_new_.empty()) a.total_new = cu_seqlens_new_.back();
}

std::int64_t Sequences::queries(AttentionArguments const& a, std::int64_t batch) {
  return a.cu_seqlens_q == nullptr ? a.seq_q : a.cu_seqlens_q[batch + 1] - a.cu_seqlens_q[batch];
}
std::int64_t Sequences::keys(AttentionArguments const& a, std::int64_t batch) {
  std::int64_t const new_keys =
      a.cu_seqlens_new == nullptr ? 0 : a.cu_seqlens_new[batch + 1] - a.cu_seqlens_new[batch];
  if (a.seqused_k != nullptr) return std::min(a.seqused_k[batch] + new_keys, *a.seq_k);
  return a.cu_seqlens_k == nullptr ? *a.seq_k : a.cu_seqlens_k[batch + 1] - a.cu_seqlens_k[batch];
}
std::int64_t Sequences::offset(AttentionArguments const& a, std::int64_t batch,
                               std::int64_t query) {
  TokenStrides const& s = *a.o_stride;
  return a.cu_seqlens_q == nullptr ? batch * s.batch + query * s.seq
                                   : (a.cu_seqlens_q[batch] + query) * s.seq;
}
std::int64_t Sequences::lse_place(AttentionArguments const& a, std::int64_t batch,
                                  std::int64_t head, std::int64_t query) {
  return a.cu_seqlens_q == nullptr ? (batch * a.heads + head) * a.seq_q + query
                                   : head * a.total_q + a.cu_seqlens_q[batch] + query;
}

UploadedSequences::UploadedSequences(Machine const& machine, Sequences const& sequences)
    : cu_seqlens_q_(machine, sequences.cu_seqlens_q_, "cu_seqlens_q"),
      cu_seqlens_k_(machine, sequences.cu_seqlens_k_, "cu_seqlens_k"),
      cu_seqlens_new_(machine, sequences.cu_seqlens_new_, "cu_seqlens_new"),
      seqused_k_(machine, sequences.seqused_k_, "seqused_k"),
      page_table_(machine, sequences.page_table_, "page_table") {}

void UploadedSequences::put(AttentionArguments& a) const {
  a.cu_seqlens_q = there(cu_seqlens_q_), a.cu_seqlens_k = there(cu_seqlens_k_);
  a.seqused_k = there(seqused_k_), a.page_table = there(page_table_);
  a.cu_seqlens_new = there(cu_seqlens_new_);
}

}  // namespace tegula::tool
