#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "broken_kernel.hpp"
#include "run_schedules.hpp"

namespace tegula {

/// The finding of the kernel of the given kind whose advice says `advice`, at the default schedule.
template <class Kernel>
sim::Finding finding_that_advises(sim::FindingKind kind, std::string const& advice, Dim3 grid = {},
                                  sim::Options const& options = {}) {
  sim::Report const report = report_of<Kernel>(options, grid);
  auto const found = std::find_if(
      report.findings.begin(), report.findings.end(), [&](sim::Finding const& finding) {
        return finding.kind == kind && finding.order.find(advice) != std::string::npos;
      });
  EXPECT_NE(found, report.findings.end())
      << "none is a " << sim::to_string(kind) << " that advises \"" << advice << "\":\n"
      << report.text();
  return found != report.findings.end() ? *found : sim::Finding{};
}

/// Nothing is found in the kernel, whatever the schedule.
template <class Kernel> void expect_silent(Dim3 grid = {}, sim::Options const& options = {}) {
  for (sim::Options const& schedule : every_schedule(8, options)) {
    sim::Report const report = report_of<Kernel>(schedule, grid);
    EXPECT_TRUE(report.ok()) << schedule_text(schedule) << "\n" << report.text();
  }
}

}  // namespace tegula
