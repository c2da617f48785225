#!/usr/bin/env bash
# vendor_deps.sh FOLDER: copies the headers, static libraries and CMake files of the C++ packages
# that a build needs out of the Debian packages installed here, as a prefix that CMake finds them
# in. Of Boost only Boost.Context and the headers that the sources include.
set -Eeuo pipefail

folder=$1
packages=(libfmt-dev libfmt9 libcli11-dev nlohmann-json3-dev libgtest-dev libgmock-dev librapidcheck-dev
  libbenchmark-dev libbenchmark1debian)
boost_context=(libboost-context1.74-dev libboost-context1.74.0)

# copy_from_usr PREFIX: copies the files named on standard input, which lie under /usr, to the same
# place under PREFIX.
copy_from_usr() {
  sed -n 's|^/usr/||p' | while read -r path; do
    if [[ -f /usr/$path ]]; then
      mkdir -p "$1/$(dirname "$path")"
      cp -P "/usr/$path" "$1/$path"
    fi
  done
}

wanted_files() { dpkg -L "$1" | grep -E '^/usr/(include|lib|share/cmake)/' | grep -vE '/(pkgconfig|doc)/'; }

# The Boost headers that the sources need, asked of the compiler.
boost_headers() {
  {
    echo '#include <boost/version.hpp>'
    grep -rhoE '#include <boost/[^>]+>' include src | sort -u || true
  } | g++ -std=c++20 -M -x c++ - | tr ' \\' '\n\n' | grep '^/usr/include/boost/'
}

rm -rf "$folder"
for package in "${packages[@]}"; do wanted_files "$package" | copy_from_usr "$folder"; done
# Boost has a prefix of its own: its include folder must not bring the other packages' headers
# before the machine's own.
for package in "${boost_context[@]}"; do wanted_files "$package" | copy_from_usr "$folder/boost"; done
boost_headers | copy_from_usr "$folder/boost"
find /usr/lib -path '*/cmake/*' -type f \( -path '*/Boost-*' -o -path '*/boost_headers-*' -o -name 'BoostDetectToolset*' \) | copy_from_usr "$folder/boost"
du -sh "$folder" | cut -f1
