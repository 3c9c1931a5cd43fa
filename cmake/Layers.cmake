# Layers.cmake: one OBJECT library per layer, each with its own include path.
# A layer sees include/ and the layers it names in DEPENDS, nothing else: `build/layers/<name>/` holds one link to that
# layer's folder, and only the folders of the named layers are on the include path. A wrong include does not compile.

add_library(graphrun_flags INTERFACE)
target_compile_options(graphrun_flags INTERFACE -Wall -Wextra -Wconversion -Wshadow -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 sees overlapping copies in std::string operator+ (GCC bug 105651).
  target_compile_options(graphrun_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # The scalar functions are written for vectors too, which have no && and ||.
  target_compile_options(graphrun_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-bitwise-instead-of-logical>)
endif()
if(GRAPHRUN_WERROR)
  target_compile_options(graphrun_flags INTERFACE -Werror)
endif()
# GCC 12 calls parts of <regex> uninitialized when it instruments them.
if(GRAPHRUN_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(graphrun_flags INTERFACE -Wno-maybe-uninitialized)
endif()
# Compilers have no common macro for it.
if(GRAPHRUN_SANITIZE)
  target_compile_definitions(graphrun_flags INTERFACE GRAPHRUN_SANITIZED)
endif()
if(GRAPHRUN_SANITIZE STREQUAL "address")
  target_compile_options(graphrun_flags INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(graphrun_flags INTERFACE -fsanitize=address,undefined)
  # DLPack's functions cross between programs that each have structs of their own for the same bytes.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_compile_options(graphrun_flags INTERFACE -fno-sanitize=function)
  endif()
elseif(GRAPHRUN_SANITIZE STREQUAL "thread")
  target_compile_options(graphrun_flags INTERFACE -fsanitize=thread)
  target_link_options(graphrun_flags INTERFACE -fsanitize=thread)
elseif(GRAPHRUN_SANITIZE)
  message(FATAL_ERROR "GRAPHRUN_SANITIZE must be address, thread or empty, got '${GRAPHRUN_SANITIZE}'")
endif()

# What makes a mistake of ours harder to use, in optimised builds: docs/internals/security.md. A sanitizer brings its
# own checks, and fortified functions need the optimiser.
add_library(graphrun_hardening INTERFACE)
if(NOT GRAPHRUN_SANITIZE AND CMAKE_BUILD_TYPE MATCHES "^(Release|RelWithDebInfo|MinSizeRel)$")
  target_compile_options(graphrun_hardening INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3
    $<IF:$<BOOL:$<TARGET_PROPERTY:GRAPHRUN_KERNELS>>,-fno-stack-protector,-fstack-protector-strong>)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    target_compile_options(graphrun_hardening INTERFACE -fcf-protection=full)
  endif()
  target_link_options(graphrun_hardening INTERFACE LINKER:-z,relro LINKER:-z,now LINKER:-z,noexecstack)
endif()

set(graphrun_computes $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O2>)

# graphrun_unity(target): where GRAPHRUN_UNITY asks for it, the sources of a target are compiled as one. What they include
# and instantiate is then read, instantiated and optimised once, in half of the time; names in unnamed namespaces have to
# be unique in a target. Files include what they use all the same: the other builds see to it.
function(graphrun_unity target)
  if(GRAPHRUN_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
  endif()
endfunction()

# graphrun_precompile(target owner): with GRAPHRUN_UNITY, the target's files start with the precompiled header of `owner`,
# a target with the same compile options. Files include what they use all the same: the other builds see to it.
function(graphrun_precompile target owner)
  if(GRAPHRUN_UNITY)
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()
endfunction()
if(GRAPHRUN_UNITY)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/main.cpp CONTENT "int main() {}\n")
  add_library(graphrun_headers OBJECT ${CMAKE_BINARY_DIR}/generated/main.cpp)
  target_link_libraries(graphrun_headers PRIVATE graphrun_flags graphrun_hardening graphrun_fmt)
  target_precompile_headers(graphrun_headers PRIVATE ${CMAKE_CURRENT_LIST_DIR}/common_headers.h)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)  # so that ccache can tell which header it was
  endif()
endif()

# graphrun_layer(name FOLDER folder [DEPENDS layer...] [LIBRARIES target...] [EXCLUDE regex] [COMPUTES] [KERNELS])
# COMPUTES: with -O2 in a release build, for folders whose loops run over data; the rest is compiled in two thirds of the
# time with -O1. KERNELS: that, and without the stack protector. Inner loops with arrays on the stack would check a canary
# at every call.
function(graphrun_layer name)
  cmake_parse_arguments(arg "COMPUTES;KERNELS" "FOLDER;EXCLUDE" "DEPENDS;LIBRARIES" ${ARGN})
  set(link ${CMAKE_BINARY_DIR}/layers/${name}/${arg_FOLDER})
  get_filename_component(parent ${link} DIRECTORY)
  file(MAKE_DIRECTORY ${parent})
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/src/${arg_FOLDER} ${link} SYMBOLIC)

  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${arg_FOLDER}/*.cpp)
  if(arg_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX ${arg_EXCLUDE})
  endif()
  add_library(graphrun_${name} OBJECT ${sources})
  target_include_directories(graphrun_${name}
    PUBLIC ${PROJECT_SOURCE_DIR}/include
    PRIVATE ${CMAKE_BINARY_DIR}/layers/${name})
  foreach(layer ${arg_DEPENDS})
    target_include_directories(graphrun_${name} PRIVATE ${CMAKE_BINARY_DIR}/layers/${layer})
  endforeach()
  target_link_libraries(graphrun_${name} PRIVATE graphrun_flags graphrun_hardening graphrun_fmt ${arg_LIBRARIES})
  set_target_properties(graphrun_${name} PROPERTIES GRAPHRUN_KERNELS "${arg_KERNELS}")
  graphrun_unity(graphrun_${name})
  if(arg_COMPUTES OR arg_KERNELS)
    target_compile_options(graphrun_${name} PRIVATE ${graphrun_computes})
  else()
    graphrun_precompile(graphrun_${name} graphrun_headers)
  endif()
endfunction()
