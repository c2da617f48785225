#include "correct_kernels.hpp"

namespace tegula {

std::vector<CorrectKernel> correct_kernels() {
  std::vector<CorrectKernel> all;
  detail::add_attention(all);
  detail::add_attention_sm90(all);
  detail::add_attention_sm100(all);
  detail::add_gemms(all);
  detail::add_pipelines(all);
  detail::add_instructions(all);
  detail::add_gallery(all);
  return all;
}

}  // namespace tegula
