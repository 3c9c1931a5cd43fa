# Tools.cmake: tests of scripts, which may need a tool. Every test is registered on every machine. A script that misses its
# tool prints "skipped: " and the reason last, and exits with 77; scripts/test lists the reasons.

# graphrun_script_test(name command args...)
function(graphrun_script_test name)
  add_test(NAME ${name} COMMAND ${ARGN})
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77)
endfunction()

# graphrun_python_test(name script args...): with $GRAPHRUN_PYTHON or python3 of the machine that runs the test
set(graphrun_python ${CMAKE_CURRENT_LIST_DIR}/python.sh)
function(graphrun_python_test name)
  graphrun_script_test(${name} ${graphrun_python} ${ARGN})
  set_tests_properties(${name} PROPERTIES LABELS python)
endfunction()

# graphrun_skipped_tests(reason name...): tests that this configuration cannot build
function(graphrun_skipped_tests reason)
  foreach(name ${ARGN})
    graphrun_script_test(${name} sh -c "echo \"skipped: $1\" && exit 77" sh ${reason})
  endforeach()
endfunction()
