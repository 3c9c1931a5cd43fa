# Shards.cmake: how ctest runs a binary of GoogleTest: as a few processes that share its tests, not one process a test.
# A process that only starts takes a tenth of a second under a sanitizer, and there are thousands of tests. The summary of
# scripts/test names the tests of a shard that failed or were skipped; by hand: test_graph --gtest_filter=Name.

# graphrun_shards(target count [PROPERTIES property value...]): tests <target>.1 to <target>.<count>
function(graphrun_shards target count)
  cmake_parse_arguments(arg "" "" "PROPERTIES" ${ARGN})
  math(EXPR last "${count} - 1")
  foreach(index RANGE ${last})
    math(EXPR number "${index} + 1")
    add_test(NAME ${target}.${number} COMMAND ${target})
    set_tests_properties(${target}.${number} PROPERTIES
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${count};GTEST_SHARD_INDEX=${index}" TIMEOUT 900 ${arg_PROPERTIES})
  endforeach()
endfunction()
