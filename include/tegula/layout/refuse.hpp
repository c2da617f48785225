#pragma once

#include <cstdint>
#include <exception>

/// How the layout algebra says no. An operation whose law cannot hold calls refuse(): in a constant
/// expression that is the compiler's own error at a line which reads as the sentence; at run time
/// it throws a layout_error whose text names operation, operands and condition.
namespace tegula {

/// A sentence that says which operation refused which operands, and why. Holds its text in place:
/// no allocation, no <string>.
class layout_error : public std::exception {
 public:
  static constexpr int kCapacity = 1536;

  char const* what() const noexcept override { return text_; }

  /// Appends a character; what does not fit is dropped, and the text then ends in "...".
  void write(char c) {
    if (length_ < kCapacity - 4) {
      text_[length_++] = c;
    } else {
      for (int i = 0; i < 3; ++i) text_[length_ + i] = '.';
    }
  }

 private:
  char text_[kCapacity] = {};
  int length_ = 0;
};

/// write_form(sink, value) writes the text form of a value, character by character, to anything
/// with write(char). Every type that can be an operand has one; these are the plain ones.
template <class Sink> constexpr void write_form(Sink& sink, char const* text) {
  while (*text != '\0') sink.write(*text++);
}
template <class Sink> constexpr void write_form(Sink& sink, std::int64_t value) {
  char digits[20] = {};
  int n = 0;
  std::uint64_t rest =
      value < 0 ? ~static_cast<std::uint64_t>(value) + 1 : static_cast<std::uint64_t>(value);
  do {
    digits[n++] = static_cast<char>('0' + rest % 10);
    rest /= 10;
  } while (rest != 0);
  if (value < 0) sink.write('-');
  while (n > 0) sink.write(digits[--n]);
}
template <class Sink> constexpr void write_form(Sink& sink, int value) {
  write_form(sink, static_cast<std::int64_t>(value));
}
template <class Sink> constexpr void write_form(Sink& sink, unsigned long value) {
  write_form(sink, static_cast<std::int64_t>(value));
}

/// What a sentence holds of one operand: a hundred characters, control characters as \xNN. What is
/// cut off ends in "...".
class OperandSink {
 public:
  static constexpr int kLongest = 100;

  explicit OperandSink(layout_error& error) : error_(error) {}
  void write(char c) {
    if (++written_ > kLongest) {
      for (int i = 0; i < 3 && written_ == kLongest + 1; ++i) error_.write('.');
      return;
    }
    unsigned const code = static_cast<unsigned char>(c);
    if (code >= 0x20 && code != 0x7f) return error_.write(c);
    constexpr char kHex[] = "0123456789abcdef";
    char const escape[] = {'\\', 'x', kHex[code / 16], kHex[code % 16]};
    for (char const part : escape) error_.write(part);
  }

 private:
  layout_error& error_;
  int written_ = 0;
};

template <class Operand> void write_operand(layout_error& error, Operand const& operand) {
  OperandSink sink(error);
  write_form(sink, operand);
}

/// Throws layout_error "operation(operands): reason". Deliberately not constexpr: where a constant
/// expression reaches it the compiler stops and prints the calling line, so that line must hold
/// `reason` as a literal.
template <class... Operands>
[[noreturn]] inline void refuse(char const* operation, char const* reason,
                                Operands const&... operands) {
  layout_error error;
  write_form(error, operation);
  error.write('(');
  [[maybe_unused]] char const* separator = "";
  ((write_form(error, separator), write_operand(error, operands), separator = ", "), ...);
  write_form(error, "): ");
  write_form(error, reason);
  throw error;
}

}  // namespace tegula
