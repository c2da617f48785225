#pragma once

/// The safetensors format (github.com/huggingface/safetensors, "Format"): an 8-byte little-endian
/// header length, a JSON header of at most 100 MB, and the tensors' bytes, which fill the rest of
/// the file without holes or overlaps.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tegula/io/array.hpp"

namespace tegula::io {

/// A safetensors file: its header, checked in full, is in memory; a tensor is read when asked for.
class Safetensors {
 public:
  struct Tensor {
    std::string dtype;                ///< as the header names it
    std::optional<ElementType> type;  ///< none where no array here has such elements: "F8_E8M0"
    std::vector<std::int64_t> shape;
    std::int64_t begin, end;  ///< bytes, from the first byte after the header
  };

  /// Reads and checks the header: every tensor of a known type as large as its shape says, and the
  /// tensors together exactly the file; at most 2^20 tensors of 64 axes, and 2^16 entries of
  /// metadata. Throws io_error.
  explicit Safetensors(std::string const& path);

  std::string const& path() const { return path_; }
  std::map<std::string, Tensor> const& tensors() const { return tensors_; }
  /// The "__metadata__" entry: text to text.
  std::map<std::string, std::string> const& metadata() const { return metadata_; }

  /// One tensor's entry. Throws io_error for a name that is not in the file; the sentence lists
  /// some that are.
  Tensor const& tensor(std::string const& name) const;
  /// What the entry says of the array, and the array itself. Throw io_error likewise, and for a
  /// tensor of a type that is not known.
  ArrayType describe(std::string const& name) const;
  Array read(std::string const& name) const;

 private:
  std::string path_;
  std::map<std::string, Tensor> tensors_;
  std::map<std::string, std::string> metadata_;
  std::int64_t data_offset_ = 0;
};

/// Writes all tensors, whole or not at all, those of larger elements first so that each is aligned
/// to its element, then by name. Throws io_error when the file cannot be written, and
/// std::invalid_argument for an array whose bytes do not fill its shape.
void write_safetensors(std::string const& path, std::map<std::string, Array> const& tensors,
                       std::map<std::string, std::string> const& metadata = {});

}  // namespace tegula::io
