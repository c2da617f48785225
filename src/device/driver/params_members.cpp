#include "params_members.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace tegula::device {
namespace {

constexpr char const* kFunctionName = "tegula_kernel_members";
constexpr int kMostMembers = 64;  // of a class

/// `each(i)` for i < count, with commas between.
template <class Each> std::string listed(int count, Each const& each) {
  std::string list;
  for (int i = 0; i < count; ++i) list += (i == 0 ? "" : ", ") + each(i);
  return list;
}

}  // namespace

std::string params_members_text(std::string const& type) {
  // An aggregate has as many members as it takes empty braces at most: a brace for one, whatever it
  // is. A structured binding of so many names is then each of them.
  std::string counts, bindings;
  for (int count = kMostMembers + 1; count > 0; --count)
    counts += fmt::format("  else if constexpr (requires {{ T{{{}}}; }}) return {};\n",
                          listed(count, [](int) { return std::string("{}"); }),
                          count > kMostMembers ? -1 : count);
  for (int count = 1; count <= kMostMembers; ++count) {
    std::string const names = listed(count, [](int i) { return fmt::format("m{}", i); });
    bindings += fmt::format(
        "    {}if constexpr (count<T>() == {}) {{ auto const& [{}] = object; each({}); }}\n",
        count == 1 ? "" : "else ", count, names, names);
  }
  return fmt::format(R"(
#line 1 "{}"
#include <memory>
#include <tuple>
#include <type_traits>
namespace tegula_params_members {{
template <class T> struct Base {{
  template <class B> requires(std::is_base_of_v<B, T> && !std::is_same_v<B, T>) operator B() const;
}};
/// -1 where it is not known.
template <class T> constexpr int count() {{
  if constexpr (!std::is_aggregate_v<T> || std::is_union_v<T> || std::is_array_v<T>) return -1;
  else if constexpr (requires {{ std::tuple_size<T>::value; }}) return -1;
  else if constexpr (requires {{ T{{Base<T>{{}}}}; }}) return -1;
{}  else return 0;
}}
struct Walk {{
  char const* begin;
  long size;
  long (*out)[3];
  long room, made = 0;
  bool known = true;

  template <class T> void leaf(T const& object, long kind) {{
    long const offset = reinterpret_cast<char const*>(std::addressof(object)) - begin;
    known = known && offset >= 0 && offset + static_cast<long>(sizeof(T)) <= size;
    if (known && made < room) out[made][0] = offset, out[made][1] = sizeof(T), out[made][2] = kind;
    ++made;
  }}
  template <class T> void member(T const& object) {{
    if constexpr (std::is_pointer_v<T>) leaf(object, {});
    else if constexpr (std::is_same_v<std::remove_cv_t<T>, bool>) leaf(object, {});
    else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) leaf(object, {});
    else if constexpr (std::is_floating_point_v<T>) leaf(object, {});
    else if constexpr (std::is_array_v<T>) elements(object);
    else if constexpr (std::is_empty_v<T>) return;
    else if constexpr (count<T>() > 1) members(object);
    else leaf(object, {});
  }}
  template <class T> void elements(T const& array) {{
    if constexpr (std::extent_v<T> > {}) leaf(array, {});
    else for (auto const& element : array) member(element);
  }}
  template <class... T> void each(T const&... objects) {{ (member(objects), ...); }}
  template <class T> void members(T const& object) {{
{}  }}
}};
}}  // namespace tegula_params_members
/// Offset, bytes and kind of each; -1 where they are not known.
extern "C" long {}(long (*out)[3], long room) {{
  using Params = {}::Params;
  alignas(Params) static char memory[sizeof(Params)];
  if constexpr (std::is_empty_v<Params>) return 0;
  else if constexpr (tegula_params_members::count<Params>() < 1) return -1;
  else {{
    tegula_params_members::Walk walk{{memory, sizeof(Params), out, room}};
    walk.members(reinterpret_cast<Params const&>(memory));
    return walk.known ? walk.made : -1;
  }}
}}
)",
                     kMembersFile, counts, static_cast<int>(MemberKind::pointer),
                     static_cast<int>(MemberKind::boolean), static_cast<int>(MemberKind::integer),
                     static_cast<int>(MemberKind::floating), static_cast<int>(MemberKind::other),
                     kMostMembers, static_cast<int>(MemberKind::other), bindings, kFunctionName,
                     type);
}

std::optional<std::vector<ParamsMember>> params_members(HostKernel const& kernel) {
  using Row = long[3];
  auto const function = reinterpret_cast<long (*)(Row*, long)>(
      reinterpret_cast<std::uintptr_t>(kernel.find(kFunctionName)));
  long const count = function == nullptr ? -1 : function(nullptr, 0);
  if (count < 0) return {};
  auto const rows = std::make_unique<Row[]>(static_cast<std::size_t>(count));
  function(rows.get(), count);
  std::vector<ParamsMember> members;
  for (long i = 0; i < count; ++i)
    members.push_back({static_cast<std::size_t>(rows[i][0]), static_cast<std::size_t>(rows[i][1]),
                       static_cast<MemberKind>(rows[i][2])});
  return members;
}

}  // namespace tegula::device
