#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tegula/sim/trace.hpp"
#include "values/place.hpp"

namespace tegula::sim {

namespace {

// Pixels.
constexpr double kMargin = 12, kTitle = 26, kLegend = 18, kHeader = 22, kRow = 20, kRowGap = 4,
                 kAxis = 20;
constexpr double kLeastLabelled = 22;  // a narrower span has no label

/// Colours of the warps that compute, in the order of their tracks: of their work on the tensor
/// cores, and of their epilogue.
struct Shades {
  char const* work;
  char const* epilogue;
};
constexpr std::array<Shades, 4> kComputers = {{{"#2f6fb3", "#a9cbeb"},
                                               {"#d07a28", "#f3c99d"},
                                               {"#3d8f5f", "#a8dbbd"},
                                               {"#8d5bb0", "#d5bde6"}}};
constexpr char const *kLoad = "#5fa777", *kStore = "#b56bb0", *kWait = "#e6e9ec",
                     *kIssue = "#5b6875", *kExponentials = "#c8506a";
/// An mbarrier's phases, by parity.
constexpr std::array<char const*, 2> kPhases = {"#cfe3d6", "#86b99b"};

std::string escaped(std::string_view text) {
  std::string out;
  for (char const c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

/// The width of a text at the labels' size, roughly, as DejaVu Sans and Verdana have it.
double width_of(std::string_view text) {
  double width = 0;
  for (char const c : text) {
    bool const wide = c == 'm' || c == 'w' || c == 'M' || c == 'W';
    bool const narrow = std::string_view("iljftrI[]().,:;' ").find(c) != std::string_view::npos;
    width += wide ? 9.5 : narrow ? 4 : 6.4;
  }
  return width;
}

/// A step of 1, 2 or 5 times a power of ten such that marks are at least `least` apart.
double step_of(double least) {
  double const power = std::pow(10.0, std::floor(std::log10(least)));
  for (double const factor : {1.0, 2.0, 5.0})
    if (factor * power >= least) return factor * power;
  return 10 * power;
}

class Picture {
 public:
  Picture(Trace const& trace, int width) : trace_(trace) {
    cycles_ = std::max(trace.cycles(), 1.0);
    for (TraceTrack const& track : trace.tracks) left_ = std::max(left_, width_of(track.name));
    left_ += 2 * kMargin;
    width_ = width > 0 ? width : std::clamp(cycles_ * 0.12, 900.0, 4000.0);
    // A row's colour: that of the n-th track of its CTA whose warps use the tensor cores.
    std::map<int, bool> computes;
    for (TraceSpan const& span : trace.spans)
      if (span.kind == SpanKind::tensor && span.issuer >= 0) computes[span.issuer] = true;
    std::map<std::tuple<int, int, int>, std::size_t> in_cta;
    for (auto const& [track, yes] : computes)
      shades_[track] = in_cta[cta_of(track)]++ % kComputers.size();
  }

  std::string draw() {
    std::vector<std::string> rows;
    double top = kMargin + kTitle;
    std::string const legend = draw_legend(top);
    top += 6;
    double y = top;
    std::string body;
    std::vector<std::vector<TraceSpan const*>> spans(trace_.tracks.size());
    for (TraceSpan const& span : trace_.spans)
      spans[static_cast<std::size_t>(span.track)].push_back(&span);
    for (std::size_t t = 0; t < trace_.tracks.size(); ++t) {
      int const track = static_cast<int>(t);
      if (t == 0 || cta_of(track) != cta_of(track - 1)) {
        Dim3 const& cta = trace_.tracks[t].cta;
        body += fmt::format("<text class=\"h\" x=\"{}\" y=\"{}\">CTA ({}, {}, {})</text>\n",
                            kMargin, y + kHeader - 7, cta.x, cta.y, cta.z);
        y += kHeader;
      }
      body += fmt::format("<text class=\"r\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", left_ - 8,
                          y + kRow / 2 + 4, escaped(trace_.tracks[t].name));
      body += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" fill=\"#fafbfc\"/>\n",
          left_, y, width_, kRow);
      body += row(spans[t], y);
      y += kRow + kRowGap;
    }
    double const bottom = y;
    double const height = bottom + kAxis + kMargin;
    double const all = left_ + width_ + 2 * kMargin;
    std::string const head = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\">\n"
        "<style>text{{font:10px 'DejaVu Sans',Verdana,sans-serif;fill:#1c2733}}.t{{font-size:13px;font-weight:bold}}"
        ".h{{font-size:11px;font-weight:bold}}.r{{font-size:11px;text-anchor:end}}.l{{text-anchor:middle}}"
        ".w{{fill:#fff;text-anchor:middle}}.a{{fill:#7a8794;text-anchor:middle}}"
        ".s{{stroke:#fff;stroke-width:0.6}}</style>\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        all, height);
    return head +
           fmt::format("<text class=\"t\" x=\"{}\" y=\"{}\">{}</text>\n", kMargin, kMargin + 14,
                       title()) +
           legend + body + axis(top, bottom) + "</svg>\n";
  }

 private:
  std::tuple<int, int, int> cta_of(int track) const {
    Dim3 const& cta = trace_.tracks[static_cast<std::size_t>(track)].cta;
    return {cta.x, cta.y, cta.z};
  }
  double x_of(double cycle) const { return left_ + cycle / cycles_ * width_; }
  std::string title() const {
    return escaped(
        fmt::format("{}: {:.0f} cycles by the model of docs/machine.md", trace_.kernel, cycles_));
  }

  char const* colour(TraceSpan const& span) const {
    auto const shades = shades_.find(span.issuer >= 0 ? span.issuer : span.track);
    switch (span.kind) {
      case SpanKind::wait:
        return kWait;
      case SpanKind::issue:
        return kIssue;
      case SpanKind::exponentials:
        return kExponentials;
      case SpanKind::load:
        return kLoad;
      case SpanKind::store:
        return kStore;
      case SpanKind::phase:
        return kPhases[parity(span)];
      case SpanKind::tensor:
        return kComputers[shades == shades_.end() ? 0 : shades->second].work;
      case SpanKind::epilogue:
        return kComputers[shades == shades_.end() ? 0 : shades->second].epilogue;
    }
    return kIssue;
  }

  std::string tooltip(TraceSpan const& span) const {
    std::string text = fmt::format("{}: {:.0f} cycles, {:.0f} to {:.0f}", span.name,
                                   span.end - span.begin, span.begin, span.end);
    if (span.count > 1) text += fmt::format("; {} instructions", span.count);
    if (span.issuer >= 0) {
      TraceTrack const& issuer = trace_.tracks[static_cast<std::size_t>(span.issuer)];
      text += fmt::format("; by {}", issuer.name);
      if (cta_of(span.issuer) != cta_of(span.track))
        text += fmt::format(" of CTA ({}, {}, {})", issuer.cta.x, issuer.cta.y, issuer.cta.z);
    }
    if (span.where.line != 0) text += fmt::format("; {}", place_text(span.where));
    return escaped(text);
  }

  /// One track's spans, outer ones before those within them, and the labels that fit beside what
  /// covers them.
  std::string row(std::vector<TraceSpan const*> const& spans, double y) const {
    std::string rectangles, labels;
    for (std::size_t i = 0; i < spans.size(); ++i) {
      TraceSpan const& span = *spans[i];
      double const x = x_of(span.begin), width = std::max(x_of(span.end) - x, 0.5);
      double const inset = span.kind == SpanKind::wait || span.kind == SpanKind::issue ? 3 : 0;
      rectangles += fmt::format(
          "<rect{} x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\"><title>{}</title></rect>\n",
          width > 3 ? " class=\"s\"" : "", x, y + inset, width, kRow - 2 * inset, colour(span),
          tooltip(span));
      // The widest part of it that no later span covers.
      double free_begin = x, best_begin = x, best_end = x;
      for (std::size_t j = i + 1; j <= spans.size(); ++j) {
        bool const inner = j < spans.size() && spans[j]->begin < span.end;
        double const covered = inner ? x_of(spans[j]->begin) : x + width;
        if (covered - free_begin > best_end - best_begin)
          best_begin = free_begin, best_end = covered;
        if (!inner) break;
        free_begin = std::max(free_begin, x_of(spans[j]->end));
      }
      for (std::string_view text : {std::string_view(span.name), short_name(span)}) {
        if (text.empty() || std::max(width_of(text) + 4, kLeastLabelled) > best_end - best_begin)
          continue;
        bool const dark = span.kind == SpanKind::wait || span.kind == SpanKind::epilogue ||
                          span.kind == SpanKind::phase;
        labels += fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                              dark ? "l" : "w", (best_begin + best_end) / 2, y + kRow / 2 + 3.5,
                              escaped(text));
        break;
      }
    }
    return rectangles + labels;
  }

  /// Of "phase 12".
  static std::size_t parity(TraceSpan const& span) {
    return static_cast<std::size_t>(span.name.back() - '0') % 2;
  }

  /// What follows the first word, which the colour says too.
  static std::string_view short_name(TraceSpan const& span) {
    if (span.kind == SpanKind::exponentials) return "exp";
    std::string_view const name = span.name;
    std::size_t const space = name.find(' ');
    return space == std::string_view::npos ? std::string_view{} : name.substr(space + 1);
  }

  /// From y on, which it moves to the end of its lines.
  std::string draw_legend(double& y) const {
    std::vector<std::pair<char const*, std::string>> entries;
    auto const add = [&](char const* fill, std::string text) {
      if (std::none_of(entries.begin(), entries.end(),
                       [&](auto const& e) { return e.second == text; }))
        entries.emplace_back(fill, std::move(text));
    };
    std::set<std::string> computers;
    for (auto const& entry : shades_)
      computers.insert(trace_.tracks[static_cast<std::size_t>(entry.first)].name);
    for (SpanKind const kind :
         {SpanKind::wait, SpanKind::issue, SpanKind::load, SpanKind::tensor, SpanKind::exponentials,
          SpanKind::epilogue, SpanKind::store, SpanKind::phase}) {
      for (TraceSpan const& span : trace_.spans) {
        if (span.kind != kind) continue;
        int const by = span.issuer >= 0 ? span.issuer : span.track;
        std::string const who = computers.size() > 2
                                    ? "each, by colour"
                                    : trace_.tracks[static_cast<std::size_t>(by)].name;
        switch (kind) {
          case SpanKind::wait:
            add(kWait, "waits");
            break;
          case SpanKind::issue:
            add(kIssue, "issues");
            break;
          case SpanKind::exponentials:
            add(kExponentials, "exponentials");
            break;
          case SpanKind::load:
            add(kLoad, "bytes arrive");
            break;
          case SpanKind::store:
            add(kStore, "bytes leave");
            break;
          case SpanKind::phase:
            add(colour(span), parity(span) == 0 ? "phases of parity 0" : "of parity 1");
            break;
          case SpanKind::tensor:
            add(colour(span), "tensor cores for " + who);
            break;
          case SpanKind::epilogue:
            add(colour(span), "epilogue of " + who);
            break;
        }
      }
    }
    std::string out;
    double x = kMargin;
    for (auto const& [fill, text] : entries) {
      double const width = 16 + width_of(text) + 14;
      if (x + width > left_ + width_ && x > kMargin) x = kMargin, y += kLegend;
      out += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"12\" height=\"12\" fill=\"{}\"/><text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
          x, y, fill, x + 16, y + 9.5, escaped(text));
      x += width;
    }
    y += kLegend;
    return out;
  }

  std::string axis(double top, double bottom) const {
    double const step = step_of(cycles_ * 80 / width_);
    std::string out;
    for (int i = 0; i * step <= cycles_; ++i) {
      double const x = x_of(i * step);
      out += fmt::format(
          "<path d=\"M{0:.1f} {1:.1f}V{2:.1f}\" stroke=\"#1c2733\" stroke-opacity=\"0.13\" stroke-width=\"0.7\"/>"
          "<text class=\"a\" x=\"{0:.1f}\" y=\"{3:.1f}\">{4:.0f}</text>\n",
          x, top + kHeader - 4, bottom, bottom + 13, i * step);
    }
    return out +
           fmt::format(
               "<text class=\"r\" style=\"fill:#7a8794\" x=\"{:.1f}\" y=\"{:.1f}\">cycles</text>\n",
               left_ - 8, bottom + 13);
  }

  Trace const& trace_;
  double cycles_ = 1;
  double left_ = 0;
  double width_ = 0;
  std::map<int, std::size_t> shades_;
};

}  // namespace

std::string to_svg(Trace const& trace, int width) { return Picture(trace, width).draw(); }

}  // namespace tegula::sim
