#pragma once

#include <utility>

/// Texts of the assembler that follow from a value, put together at compile time, as the "C"
/// constraint of inline PTX takes them.
namespace tegula::detail {

/// A text of at most Capacity - 1 characters.
template <int Capacity> struct AssemblerText {
  char text[Capacity] = {};
  int length = 0;

  constexpr AssemblerText& append(char const* s) {
    while (*s != '\0') text[length++] = *s++;
    return *this;
  }
  constexpr AssemblerText& append(int value) {
    if (value >= 10) append(value / 10);
    text[length++] = static_cast<char>('0' + value % 10);
    return *this;
  }
};

/// A text as an array of its characters.
template <auto Text, class Places = std::make_integer_sequence<int, Text.length>>
struct AssemblerCharacters;
template <auto Text, int... Places>
struct AssemblerCharacters<Text, std::integer_sequence<int, Places...>> {
  static constexpr char value[] = {Text.text[Places]..., '\0'};
};

}  // namespace tegula::detail
