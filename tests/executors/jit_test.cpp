// Whole steps as kernels compiled at load (SessionOptions::jit): asked for or not, wanted or not, loadable or not.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "executors/verify_models.h"
#include "graphrun/error.h"
#include "graphrun/session.h"
#include "graphrun/verify.h"
#include "support/graph_run.h"
#include "support/tensors.h"

namespace graphrun {
namespace {

using test::verified_model;

std::size_t regions_over_rows(const Program& program) {
  std::size_t count = 0;
  for (const Phase& phase : program.phases)
    for (const Region& region : phase.regions) count += region.stages.empty() ? 0 : 1;
  return count;
}

// A GPU, as far as plans go, on which the executor `cpu` runs: with regions over rows, which it may fail to load, or
// without, and then it may fail all the same.
class Machine final : public Executor {
 public:
  explicit Machine(std::string failing = {}, bool plans = true) : failing_(std::move(failing)), plans_(plans) {}
  std::string_view name() const override { return "machine"; }
  std::string_view default_target() const override { return "h200"; }
  Support supports(const StepSignature& step, const Target&) const override { return cpu_->supports(step, host_); }
  RegionPlan region_choices(const RegionSignature& region, const Target&) const override {
    if (region.over_elements()) return RegionPlan::no("none over elements");
    if (!plans_) return RegionPlan::no("its rows are odd");
    ++asked_;
    return cpu_->region_choices(region, host_);
  }
  std::unique_ptr<Runnable> load(const Program& program) override {
    loaded_.push_back(regions_over_rows(program));
    if ((loaded_.back() > 0 || !plans_) && !failing_.empty())
      throw Error(ErrorKind::device, failing_, "clusters of 8 blocks do not fit", "a larger GPU has room");
    Program on_host = program;
    on_host.target = "host";
    return cpu_->load(on_host);
  }

  std::size_t asked() const { return asked_; }
  const std::vector<std::size_t>& loaded() const { return loaded_; }  // regions over rows, of each program

 private:
  std::shared_ptr<Executor> cpu_ = test::executor("cpu");
  const Target& host_ = find_target("host");
  std::string failing_;
  bool plans_;
  mutable std::size_t asked_ = 0;
  std::vector<std::size_t> loaded_;
};

template <class Options = SessionOptions>
Options options_for(const std::shared_ptr<Machine>& machine, Jit jit) {
  Options options;
  options.custom_executor = machine;
  options.jit = jit;
  return options;
}

template <class F>
Diagnostic rejected(F f) {
  try {
    f();
  } catch (const Error& error) {
    return error.diagnostics().front();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

TEST(Jit, PreferAndRequireTakeRegionsOverRows) {
  for (const Jit jit : {Jit::prefer, Jit::require}) {
    const auto machine = std::make_shared<Machine>();
    Session session(verified_model(), options_for(machine, jit));
    EXPECT_GT(regions_over_rows(session.program()), 0u);
    EXPECT_EQ(machine->loaded().size(), 1u);
    EXPECT_TRUE(session.fusion().fallbacks.empty());
  }
}

TEST(Jit, OffDoesNotAskForThem) {
  const auto machine = std::make_shared<Machine>("cuda.kernels");
  Session session(verified_model(), options_for(machine, Jit::off));
  EXPECT_EQ(machine->asked(), 0u);
  EXPECT_EQ(machine->loaded(), std::vector<std::size_t>{0});
  EXPECT_TRUE(session.fusion().fallbacks.empty());
  // A host compiles nothing: its regions stay.
  SessionOptions host;
  host.jit = Jit::off;
  EXPECT_GT(regions_over_rows(plan_program(verified_model(), host)), 0u);
}

TEST(Jit, WhatDoesNotLoadIsPlannedAgainWithout) {
  const auto machine = std::make_shared<Machine>("cuda.kernels");
  Session session(verified_model(), options_for(machine, Jit::prefer));
  ASSERT_EQ(machine->loaded().size(), 2u);
  EXPECT_GT(machine->loaded()[0], 0u);
  EXPECT_EQ(machine->loaded()[1], 0u);
  EXPECT_EQ(regions_over_rows(session.program()), 0u);
  EXPECT_EQ(session.fusion().fallbacks,
            std::vector<std::string>{"machine runs no whole step as one kernel: clusters of 8 blocks do not fit"});

  Session plain(verified_model(), options_for(std::make_shared<Machine>(), Jit::off));
  EXPECT_EQ(session.train().losses, plain.train().losses);
  EXPECT_EQ(session.weights_hash(), plain.weights_hash());
}

TEST(Jit, RequireTellsWhyNot) {
  const auto fails = std::make_shared<Machine>("cuda.kernels");
  Diagnostic told = rejected([&] { Session(verified_model(), options_for(fails, Jit::require)); });
  EXPECT_EQ(told.code, "cuda.kernels");
  EXPECT_EQ(told.message, "clusters of 8 blocks do not fit");
  EXPECT_EQ(fails->loaded().size(), 1u);

  const auto declines = std::make_shared<Machine>("", false);
  told = rejected([&] { plan_program(verified_model(), options_for(declines, Jit::require)); });
  EXPECT_EQ(told.code, "jit.required");
  EXPECT_NE(told.message.find("no kernel runs a whole step of 'train'"), std::string::npos) << told.message;
  EXPECT_NE(told.message.find("machine: its rows are odd"), std::string::npos) << told.message;

  SessionOptions no_regions = options_for(std::make_shared<Machine>(), Jit::require);
  no_regions.fuse = false;
  told = rejected([&] { plan_program(verified_model(), no_regions); });
  EXPECT_NE(told.message.find("regions are off"), std::string::npos) << told.message;

  SessionOptions host;
  host.jit = Jit::require;
  told = rejected([&] { plan_program(verified_model(), host); });
  EXPECT_EQ(told.code, "jit.required");
  EXPECT_NE(told.message.find("the executor cpu compiles no kernels"), std::string::npos) << told.message;
}

TEST(Jit, OtherErrorsOfLoadingAreNoReasonToPlanAgain) {
  const auto machine = std::make_shared<Machine>("cuda.call");
  EXPECT_EQ(rejected([&] { Session(verified_model(), options_for(machine, Jit::prefer)); }).code, "cuda.call");
  EXPECT_EQ(machine->loaded().size(), 1u);
  const auto has_none = std::make_shared<Machine>("cuda.kernels", false);
  EXPECT_EQ(rejected([&] { Session(verified_model(), options_for(has_none, Jit::prefer)); }).code, "cuda.kernels");
  EXPECT_EQ(has_none->loaded().size(), 1u);
}

TEST(Jit, VerifyRunsWhatASessionRuns) {
  for (const bool trajectory : {false, true}) {
    const auto machine = std::make_shared<Machine>("cuda.kernels");
    auto options = options_for<VerifyOptions>(machine, Jit::prefer);
    options.trajectory = trajectory;
    const VerifyReport report = verify(verified_model(), options);
    EXPECT_TRUE(report.passed()) << to_string(*report.difference);
    ASSERT_EQ(report.fallbacks.size(), 1u);
    EXPECT_NE(report.fallbacks[0].find("do not fit"), std::string::npos);
    EXPECT_EQ(std::ranges::count_if(machine->loaded(), [](std::size_t regions) { return regions > 0; }), 1);

    options = options_for<VerifyOptions>(std::make_shared<Machine>("cuda.kernels"), Jit::require);
    options.trajectory = trajectory;
    EXPECT_EQ(rejected([&] { verify(verified_model(), options); }).code, "cuda.kernels");
  }
}

TEST(Jit, AValueIsThereWhateverLoads) {
  const auto machine = std::make_shared<Machine>("cuda.kernels");
  auto options = options_for<ValueOptions>(machine, Jit::prefer);
  options.steps = 2;
  const Model model = verified_model();
  const HostTensor got = value_after(model, "W", options);
  EXPECT_EQ(machine->loaded().size(), 2u);
  options.custom_executor = std::make_shared<Machine>();
  options.jit = Jit::off;
  const HostTensor expected = value_after(model, "W", options);
  EXPECT_TRUE(std::ranges::equal(got.bytes(), expected.bytes()));
}

}  // namespace
}  // namespace graphrun
