#include "correct_kernels.hpp"
#include "gallery.hpp"

namespace tegula::detail {

// Of the gallery of broken kernels, what they are once they are repaired. They leave nothing to compare.
void add_gallery(std::vector<CorrectKernel>& all) {
  for (broken::Chapter const& chapter : broken::chapters()) {
    for (broken::Exhibit const& exhibit : chapter.exhibits) {
      all.push_back({"gallery", exhibit.name, [exhibit](sim::Options const& schedule) {
                       sim::Options options = exhibit.options;
                       options.completion = schedule.completion;
                       options.interleaving = schedule.interleaving;
                       options.seed = schedule.seed;
                       Outcome outcome;
                       outcome.report = exhibit.run(options, /*repaired=*/true);
                       outcome.output.assign(exhibit.name.begin(), exhibit.name.end());
                       return outcome;
                     }});
    }
  }
}

}  // namespace tegula::detail
