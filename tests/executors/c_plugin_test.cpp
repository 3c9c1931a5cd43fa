// c_plugin_test.cpp: plug-ins in C: what they compute, what is told of damaged ones, versions of the interface,
// arguments, targets, and what verify finds wrong in them.
#include <gtest/gtest.h>

#include <set>

#include "base/random_bits.h"
#include "executors/flat_program.h"
#include "executors/plugin_host.h"
#include "executors/verify_models.h"
#include "graphrun/error.h"
#include "graphrun/executor.h"
#include "graphrun/op_traits.h"
#include "graphrun/params.h"
#include "graphrun/session.h"
#include "graphrun/verify.h"
#include "support/matmul_executor.h"
#include "support/variable.h"

namespace graphrun {
namespace {

using test::Variable;

std::string plugin(const std::string& name) {
  return std::string(GRAPHRUN_PLUGINS "/lib") + name + ".so";
}
const std::string kFaulty = plugin("faulty_plugin");

Session session_on(const std::string& executor) {
  SessionOptions options;
  options.executor = executor;
  return Session(test::verified_model(), options);
}

TEST(CPlugin, TrainsAsTheSameExecutorInCppDoes) {
  Session in_c = session_on(plugin("matmul_plugin"));
  SessionOptions options;
  options.custom_executor = test::matmul_executor();
  Session in_cpp(test::verified_model(), options);
  EXPECT_EQ(in_c.train().losses, in_cpp.train().losses);
  EXPECT_EQ(in_c.weights_hash(), in_cpp.weights_hash());
  EXPECT_EQ(in_c.counters(), in_cpp.counters());
  EXPECT_FALSE(in_c.fusion().fallbacks.empty());
}

TEST(ExecutorLibrary, OneOfAnotherBuildIsRejected) {
  try {
    (void)find_executor(plugin("old_library"));
    ADD_FAILURE() << "it was accepted";
  } catch (const Error& error) {
    const Diagnostic& found = error.diagnostics().front();
    EXPECT_EQ(found.code, "executor.version");
    EXPECT_NE(found.message.find("libold_library.so belongs to another build of graphrun"), std::string::npos)
        << found.message;
    EXPECT_FALSE(found.hint.empty());
  }
}

TEST(CPlugin, IsVerified) {
  for (const Model& model : {test::verified_model(), test::classifier()}) {
    VerifyOptions options;
    options.executor = plugin("matmul_plugin");
    const VerifyReport report = verify(model, options);
    EXPECT_TRUE(report.passed()) << to_string(*report.difference);
    EXPECT_GT(report.predictions, 0u);
  }
}

struct Damage {
  std::string fault, code;
  ErrorKind kind;
  std::vector<std::string> told;
};
void PrintTo(const Damage& damage, std::ostream* to) {
  *to << damage.fault;
}
const std::string kTable = "executor.plugin", kFailed = "executor.failed";

class CPluginDamage : public ::testing::TestWithParam<Damage> {};

TEST_P(CPluginDamage, IsAnErrorThatSaysWhatAndWhere) {
  const Damage& damage = GetParam();
  const Variable fault("PLUGIN_FAULT", damage.fault);
  try {
    Session session = session_on(kFaulty);
    session.train();
    ADD_FAILURE() << "it was not found";
  } catch (const Error& error) {
    const Diagnostic& first = error.diagnostics().front();
    EXPECT_EQ(first.code, damage.code) << first.message;
    EXPECT_EQ(error.kind(), damage.kind) << first.message;
    EXPECT_EQ(first.message.find('\n'), std::string::npos) << first.message;
    EXPECT_NE(first.message.find(kFaulty), std::string::npos) << first.message;
    for (const std::string& part : damage.told)
      EXPECT_NE(first.message.find(part), std::string::npos) << part << " is not in: " << first.message;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Faults, CPluginDamage,
    ::testing::Values(
        Damage{"entry_null", kTable, ErrorKind::input, {"graphrun_executor_plugin_c() gives null"}},
        Damage{"entry_throws", kFailed, ErrorKind::run, {"graphrun_executor_plugin_c(): it threw: out of luck"}},
        Damage{"size_0", kTable, ErrorKind::input, {"the struct_size of its gr_executor is 0"}},
        Damage{"size_short", kTable, ErrorKind::input, {"struct_size", "was"}},
        Damage{"version_0", "executor.version", ErrorKind::input, {"needs version 0"}},
        Damage{"version_later", "executor.version", ErrorKind::input, {"needs version 2", "this graphrun has 1"}},
        Damage{"null_functions", kTable, ErrorKind::input, {"these of its functions are null: supports, read"}},
        Damage{"null_name", kTable, ErrorKind::input, {"its name is null"}},
        Damage{"odd_name", kTable, ErrorKind::input, {"its name is no name"}},
        Damage{"name_of_cpu", kTable, ErrorKind::input, {"its name cpu is reserved"}},
        Damage{"null_target", kTable, ErrorKind::input, {"its target 0 has no name"}},
        Damage{"create_fails", kFailed, ErrorKind::device, {"faulty", "create(): the unit\\nis on fire"}},
        Damage{"create_throws", kFailed, ErrorKind::run, {"create(): it threw: out of luck"}},
        Damage{"supports_throws", kFailed, ErrorKind::run, {"supports(): it threw: out of luck"}},
        Damage{"supports_odd", kFailed, ErrorKind::run, {"supports()", "returned 77, which is not a gr_answer"}},
        Damage{"load_fails", kFailed, ErrorKind::device, {"load(): the unit"}},
        Damage{"load_throws_int", kFailed, ErrorKind::run, {"load(): it threw something that is not a std::exception"}},
        Damage{"run_fails", kFailed, ErrorKind::device, {"run() of train: the unit"}},
        Damage{"run_silent", kFailed, ErrorKind::run, {"run() of train: it failed without a reason"}},
        Damage{
            "run_odd", kFailed, ErrorKind::run, {"run() of train: it returned 77, which is not a gr_kind: the unit"}},
        Damage{"run_throws", kFailed, ErrorKind::run, {"run(): it threw: out of luck"}},
        Damage{"write_fails", kFailed, ErrorKind::device, {"write() of ", "the unit"}},
        Damage{"read_fails", kFailed, ErrorKind::device, {"read() of ", "the unit"}}),
    [](const auto& name) { return name.param.fault; });

TEST(CPlugin, ATargetOfAnotherIsRejected) {
  const Variable fault("PLUGIN_FAULT", "target_taken");
  try {
    (void)find_executor(kFaulty);
    FAIL() << "it was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostics().front().code, "target.taken") << error.what();
  }
}

TEST(CPlugin, BringsTargets) {
  const Variable fault("PLUGIN_FAULT", "targets");
  SessionOptions options;
  options.executor = kFaulty;
  EXPECT_EQ(plan_program(test::verified_model(), options).target, "one_unit");
  options.target = "two_units";
  EXPECT_EQ(plan_program(test::verified_model(), options).target, "two_units");
  EXPECT_TRUE(verify(test::verified_model(), {options}).passed());
  options.target = "host";
  try {
    plan_program(test::verified_model(), options);
    FAIL() << "planned for a machine of cpu";
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostics().front().code, "target.executor") << error.what();
    EXPECT_NE(error.diagnostics().front().hint.find("one_unit, two_units"), std::string::npos) << error.what();
  }
}

TEST(CPlugin, TakesAnArgument) {
  EXPECT_EQ(find_executor(kFaulty + ":fine")->name(), "faulty");
  try {
    (void)find_executor(kFaulty + ":/dev/npu0");
    FAIL() << "it was accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("create(): there is no unit '/dev/npu0'"), std::string::npos);
  }
}

TEST(CPlugin, APathEndsBeforeItsArgument) {
  const auto of = [](std::string_view text) {
    const std::optional<PluginName> name = plugin_name(text);
    return name ? name->path + "|" + name->argument : "a name";
  };
  EXPECT_EQ(of("./x.so"), "./x.so|");
  EXPECT_EQ(of("./x.so:"), "./x.so|");
  EXPECT_EQ(of("./x.so:a:b/c.so"), "./x.so|a:b/c.so");
  EXPECT_EQ(of("/a:b/x"), "/a:b/x|");
  EXPECT_EQ(of("cuda:1"), "a name");
  EXPECT_EQ(of("npu:/dev/npu0"), "a name");
  EXPECT_EQ(of("x.so"), "a name");
}

TEST(CPlugin, ReportsItsDevices) {
  const DeviceList list = find_executor(kFaulty)->devices();
  ASSERT_EQ(list.devices.size(), 1u);
  EXPECT_EQ(list.devices[0].name, "a unit\\x1b[31m");
  EXPECT_EQ(list.devices[0].units, 3);
  {
    const Variable fault("PLUGIN_FAULT", "no_devices");
    EXPECT_EQ(find_executor(kFaulty)->devices().missing, "no unit is plugged in");
  }
  const Variable fault("PLUGIN_FAULT", "null_devices");
  EXPECT_THROW(find_executor(kFaulty)->devices(), Error);
}

TEST(CPlugin, OneThatNeedsALaterVersionIsRejectedInOneLine) {
  try {
    (void)find_executor(plugin("next_plugin"));
    FAIL() << "it was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostics().front().message,
              plugin("next_plugin") + " needs version 2 of the interface for executors in C, this graphrun has 1");
  }
}

TEST(CPlugin, OneOfALaterVersionThatCanDoWithThisOneRuns) {
  Session reduced = session_on(plugin("reduced_plugin")), usual = session_on(plugin("matmul_plugin"));
  EXPECT_EQ(reduced.train().losses, usual.train().losses);
}

TEST(CPlugin, OneOfVersion1RunsForEver) {
  Session first = session_on(plugin("first_plugin")), usual = session_on(plugin("matmul_plugin"));
  EXPECT_EQ(first.train().losses, usual.train().losses);
}

// ---- what the host gives

std::uint64_t reported = 0;

TEST(CPlugin, ReportsAllocationsAndSteps) {
  Session session = session_on(kFaulty);
  const Variable fault("PLUGIN_FAULT", "allocates");
  watch_allocations([](const char* call, std::uint64_t bytes) {
    if (std::string_view(call) == "unitAlloc") reported += bytes;
  });
  session.advance(3);
  watch_allocations(nullptr);
  EXPECT_GT(reported, 0u);

  SessionOptions options;
  options.executor = kFaulty;
  const auto runnable = find_executor(kFaulty)->load(plan_program(test::verified_model(), options));
  EXPECT_EQ(runnable->steps_begun(), 0u);
  runnable->run(0, 3);
  EXPECT_EQ(runnable->steps_begun(), 2u);
}

TEST(CPluginHost, DrawsAsTheLibraryDoes) {
  std::uint32_t words[6];
  plugin_host().random_bits(7, 5, 3, 6, words);
  for (std::uint64_t i = 0; i < 6; ++i) EXPECT_EQ(words[i], bits::word(7, 5, 3 + i));
  std::set<std::uint64_t> places;
  for (std::uint64_t i = 0; i < 100; ++i) {
    places.insert(plugin_host().permuted(i, 100, 7, 5));
    EXPECT_EQ(plugin_host().permuted(i, 100, 7, 5), bits::permuted(i, 100, 7, 5));
  }
  EXPECT_EQ(places.size(), 100u);
  EXPECT_EQ(plugin_host().permuted(3, 0, 7, 5), 3u) << "there is nothing to permute: it ends all the same";
}

TEST(CPluginHost, AKernelIsFoundOrItIsSaidWhyNot) {
  const TensorType type{DType::f32, {3}, 0};
  const std::vector<TensorType> both = {type, type};
  const FlatSignature add({*find_op("add"), NoParams{}, both, type, false});
  const float a[] = {1, 2, 3}, b[] = {10, 20, 30};
  float out[3] = {};
  gr_operands at{};
  at.struct_size = sizeof at;
  at.inputs[0] = a, at.inputs[1] = b, at.output = out, at.capacity = 1;
  char why[GR_WHY] = {};
  gr_kernel* kernel = plugin_host().find_kernel(&add.get(), &at, why);
  ASSERT_NE(kernel, nullptr) << why;
  plugin_host().run_kernel(kernel);
  EXPECT_EQ(out[2], 33.0f);
  plugin_host().free_kernel(kernel);
  plugin_host().free_kernel(nullptr);

  const auto rejected = [&](gr_signature step) {
    EXPECT_EQ(plugin_host().find_kernel(&step, &at, why), nullptr);
    return std::string(why);
  };
  gr_signature odd = add.get();
  odd.op = "addd";
  EXPECT_EQ(rejected(odd), "there is no op 'addd'");
  odd = add.get(), odd.op = nullptr;
  EXPECT_EQ(rejected(odd), "there is no op ''");
  odd = add.get(), odd.inputs.count = 1;
  EXPECT_EQ(rejected(odd), "add: it takes 2 operands, 1 are given");
  odd = add.get(), odd.inputs.count = 9;
  EXPECT_EQ(rejected(odd), "invalid step signature");
  odd = add.get(), odd.op = "sum", odd.inputs.count = 1;
  EXPECT_EQ(rejected(odd), "sum: its parameters are those of another op");
  EXPECT_EQ(plugin_host().find_kernel(nullptr, &at, nullptr), nullptr);
}

TEST(CPluginHost, AttributesAreThoseOfTheStep) {
  const TensorType type{DType::f32, {3, 4}, 0};
  const auto integer = [&](std::string_view op, const Params& params, const char* name) {
    const FlatSignature step({*find_op(op), params, {type}, type, false});
    return gr_integer(&step.get(), name);
  };
  EXPECT_EQ(integer("slice", SliceParams{1, 5'000'000'000}, "start"), 5'000'000'000);
  EXPECT_EQ(integer("matmul", MatmulParams{false, true, Precision::fp32}, "transpose_b"), 1);
  EXPECT_EQ(integer("matmul", MatmulParams{false, true, Precision::fp32}, "tf32"), 0);
  EXPECT_EQ(integer("matmul", MatmulParams{false, true, Precision::tf32}, "tf32"), 1);
  EXPECT_EQ(static_cast<std::uint64_t>(integer("random_uniform", RandomParams{~0ull - 1, 0, 1}, "key")), ~0ull - 1);
  const FlatSignature turned({*find_op("transpose"), PermuteParams{{1, 0}}, {type}, type, false});
  const gr_attribute* axes = gr_find_attribute(&turned.get(), "axes");
  ASSERT_NE(axes, nullptr);
  EXPECT_EQ(axes->list_count, 8u);
  EXPECT_EQ(axes->list[0], 1);
}

// What the verifier says of an executor that is wrong.
std::string difference_of(const std::string& fault) {
  const Variable variable("PLUGIN_FAULT", fault);
  VerifyOptions options;
  options.executor = kFaulty;
  const VerifyReport report = verify(test::verified_model(), options);
  return report.passed() ? "" : to_string(*report.difference);
}

TEST(CPlugin, VerifyNamesAWrongOp) {
  EXPECT_EQ(difference_of(""), "");
  const std::string told = difference_of("wrong_sum");
  EXPECT_NE(told.find("(sum, "), std::string::npos) << told;
  EXPECT_NE(told.find(" on faulty and "), std::string::npos) << told;
}

TEST(CPlugin, VerifyFindsAPredictionThatDoesNothing) {
  const std::string told = difference_of("predicts_nothing");
  EXPECT_NE(told.find("predict/p differs after the whole phase"), std::string::npos) << told;
}

TEST(CPlugin, VerifyFindsForgottenSteps) {
  const std::string told = difference_of("forgets_steps");
  EXPECT_NE(told.find("many steps in one run"), std::string::npos) << told;
}

TEST(CPlugin, AStepThatItDeclinesIsNamed) {
  const Variable fault("PLUGIN_FAULT", "declines_sum");
  try {
    (void)session_on(kFaulty);
    FAIL() << "it was planned";
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostics().front().code, "step.unsupported") << error.what();
    EXPECT_NE(std::string(error.what()).find("faulty has no kernel for op 'sum'"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace graphrun
