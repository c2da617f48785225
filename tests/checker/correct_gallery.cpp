#include "correct_kernels.hpp"
#include "gallery.hpp"
#include "museum.hpp"

namespace tegula::detail {

namespace {

/// The kernels of a gallery once they are repaired. They leave nothing to compare.
void add(std::vector<CorrectKernel>& all, std::string_view family,
         std::vector<broken::Chapter> const& chapters) {
  for (broken::Chapter const& chapter : chapters) {
    for (broken::Exhibit const& exhibit : chapter.exhibits) {
      all.push_back({family, exhibit.name, [exhibit](sim::Options const& schedule) {
                       Outcome outcome;
                       outcome.report = broken::report_at(
                           exhibit, /*repaired=*/true,
                           {schedule.completion, schedule.interleaving, schedule.seed});
                       outcome.output.assign(exhibit.name.begin(), exhibit.name.end());
                       return outcome;
                     }});
    }
  }
}

}  // namespace

void add_gallery(std::vector<CorrectKernel>& all) {
  add(all, "gallery", broken::chapters());
  add(all, "museum", museum::gallery().chapters);
}

}  // namespace tegula::detail
