#pragma once

#include "../broken/gallery.hpp"

/// The museum: public bugs of shipped GPU kernels, each as a short kernel of our own.
namespace tegula::museum {

broken::Gallery const& gallery();

}  // namespace tegula::museum
