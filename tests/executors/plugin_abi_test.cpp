// plugin_abi_test.cpp: a plug-in that was built against other headers, or for another C++ library, is refused before
// anything of it is called.
#include <gtest/gtest.h>

#include "graphrun/error.h"
#include "graphrun/executor_plugin.h"

namespace graphrun {
namespace {

std::string path_of(const std::string& name) {
  return std::string(GRAPHRUN_PLUGINS "/libabi_") + name + ".so";
}

TEST(PluginAbi, OneOfTheSameHeadersIsCalled) {
  try {
    (void)find_executor(path_of("same"));
    ADD_FAILURE() << "its create() throws";
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostics().front().message,
              path_of("same") + " is not an executor plug-in: its create() threw: create() was called");
  }
}

TEST(PluginAbi, AnOldOrForeignOneIsNot) {
  for (const std::string name : {"older", "debug", "old_strings"}) {
    try {
      (void)find_executor(path_of(name));
      ADD_FAILURE() << name << " was accepted";
    } catch (const Error& error) {
      const Diagnostic& found = error.diagnostics().front();
      EXPECT_EQ(found.code, "executor.abi") << name;
      EXPECT_NE(found.message.find(path_of(name) + " was built for another version of graphrun"), std::string::npos);
      EXPECT_EQ(found.message.find('\n'), std::string::npos);
    }
  }
}

// What a struct that grew does to the hash.
TEST(PluginAbi, SizesAndNamesCount) {
  struct Small {
    int a;
  };
  struct Large {
    int a, b;
  };
  const auto of = [](auto add) {
    abi::Hash hash;
    add(hash);
    return hash.value();
  };
  const std::uint32_t small = of([](abi::Hash& hash) { hash.type<Small>("T"); });
  EXPECT_EQ(small, of([](abi::Hash& hash) { hash.type<Small>("T"); }));
  EXPECT_NE(small, of([](abi::Hash& hash) { hash.type<Large>("T"); }));
  EXPECT_NE(small, of([](abi::Hash& hash) { hash.type<Small>("U"); }));
  EXPECT_GT(kExecutorAbi, 1000u);  // not a number that was counted up
}

}  // namespace
}  // namespace graphrun
