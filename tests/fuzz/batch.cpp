// Lines of a batch: whatever the line, the answer is one line of JSON with a result or an error.

#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "layout_result.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  std::string const answer =
      tegula::tool::answer_line({reinterpret_cast<char const*>(data), size}, 1);
  auto const json = nlohmann::json::parse(answer, nullptr, false);
  bool const whole = answer.ends_with('\n') && answer.find('\n') + 1 == answer.size();
  if (!whole || !json.is_object() || json.contains("result") == json.contains("error"))
    std::abort();
  return 0;
}
