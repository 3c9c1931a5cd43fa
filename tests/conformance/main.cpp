// The suite iterates the registries, so its tests are made at the start of the program and not by macros.
#include <cstdio>

#include "conformance/suite.h"
#include "conformance/table.h"

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  graphrun::test::register_values();
  graphrun::test::register_aliases();
  graphrun::test::register_gradients();
  const int result = RUN_ALL_TESTS();
  std::fputs(graphrun::test::table_text().c_str(), stdout);
  return result;
}
