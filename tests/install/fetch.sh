#!/usr/bin/env bash
# fetch.sh SOURCE CXX CMAKE FOLDER: a project that takes graphrun through CMake's FetchContent, from the folder SOURCE and
# without a network. It is configured, and with GRAPHRUN_ALL_CASES set also built and run, which takes minutes.
set -euo pipefail
source_dir=$1 cxx=$2 cmake=$3 folder=$4
mkdir -p "$folder/project"
cp "$source_dir/tests/install/consumer/main.cpp" "$folder/project"
cat >"$folder/project/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(fetching LANGUAGES CXX)
include(FetchContent)
FetchContent_Declare(graphrun URL nowhere.invalid/graphrun.tar.gz)
FetchContent_MakeAvailable(graphrun)
add_executable(consumer main.cpp)
target_link_libraries(consumer PRIVATE graphrun::graphrun)
if(TARGET test_graph OR DEFINED CPACK_PACKAGE_NAME)
  message(FATAL_ERROR "tests or packages of graphrun are part of the project that fetched it")
endif()
END
"$cmake" -S "$folder/project" -B "$folder/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="$cxx" \
  -DFETCHCONTENT_FULLY_DISCONNECTED=ON "-DFETCHCONTENT_SOURCE_DIR_GRAPHRUN=$source_dir" -DGRAPHRUN_UNITY=ON -DGRAPHRUN_CUDA=OFF
[ -n "${GRAPHRUN_ALL_CASES:-}" ] || exit 0
"$cmake" --build "$folder/build" --target consumer
"$folder/build/consumer"
