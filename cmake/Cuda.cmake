# Cuda.cmake: libgraphrun_cuda.so, the CUDA executor as a library of its own, beside libgraphrun.so.
# GRAPHRUN_CUDA=AUTO builds it where a CUDA compiler is found and says so where not; ON requires one; OFF never looks.
# The library links the static CUDA runtime and nothing else of CUDA: it loads where there is no driver and no toolkit.
set(GRAPHRUN_CUDA AUTO CACHE STRING "Build the CUDA executor: AUTO, ON or OFF")
set_property(CACHE GRAPHRUN_CUDA PROPERTY STRINGS AUTO ON OFF)
set(GRAPHRUN_CUDA_FOUND FALSE)
if(NOT GRAPHRUN_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "GRAPHRUN_CUDA must be AUTO, ON or OFF, got '${GRAPHRUN_CUDA}'")
endif()

if(NOT GRAPHRUN_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  # The toolkit's usual folder is often not on the PATH.
  if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    find_program(GRAPHRUN_NVCC nvcc HINTS ENV CUDA_PATH ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES bin)
    mark_as_advanced(GRAPHRUN_NVCC)
    if(GRAPHRUN_NVCC)
      set(CMAKE_CUDA_COMPILER ${GRAPHRUN_NVCC})
    endif()
  endif()
  if(NOT CMAKE_CUDA_COMPILER)
    check_language(CUDA)
  endif()
  if(CMAKE_CUDA_COMPILER)
    set(GRAPHRUN_CUDA_FOUND TRUE)
  elseif(GRAPHRUN_CUDA STREQUAL "ON")
    message(FATAL_ERROR "GRAPHRUN_CUDA=ON, but no CUDA compiler was found; CMAKE_CUDA_COMPILER can name one")
  else()
    message(STATUS "CUDA: no compiler found, the CUDA executor is not built (GRAPHRUN_CUDA=ON makes this an error)")
  endif()
endif()

if(GRAPHRUN_CUDA_FOUND)
  # Before enable_language, which would otherwise choose one by itself. A value of the user's wins.
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES "80-real;90a-real;100-virtual" CACHE STRING "CUDA architectures")
  endif()
  if(CMAKE_CUDA_ARCHITECTURES MATCHES "(^|;)90(-|;|$)")
    message(FATAL_ERROR "CMAKE_CUDA_ARCHITECTURES: name 90a instead of 90, whose code has no instructions of warpgroups")
  endif()
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED)
  message(STATUS "CUDA: ${CMAKE_CUDA_COMPILER_VERSION}, architectures ${CMAKE_CUDA_ARCHITECTURES}")

  # C++20 as for the rest of the project. CMake 3.25 does not know that nvcc has it and needs to be told the flag.
  set(CMAKE_CUDA_STANDARD_REQUIRED OFF)
  set(cuda_standard "")
  if(NOT "cuda_std_20" IN_LIST CMAKE_CUDA_COMPILE_FEATURES)
    set(cuda_standard -std=c++20)
  endif()

  graphrun_layer(kernels_cuda FOLDER kernels/cuda DEPENDS kernels KERNELS)
  graphrun_layer(executor_cuda FOLDER executors/cuda DEPENDS kernels executor_common executor_cuda_planner LIBRARIES CUDA::cudart_static COMPUTES)
  # Kernels that are compiled when a program is loaded include these, by these names: texts within the library.
  set(device_sources graphrun/scalar_op_list.h kernels/scalar_type.h kernels/scalar_functions.h kernels/scalar_ops.h
    kernels/cuda/element_functions.h base/random_bits.h)
  file(GLOB tile_headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/src/kernels/cuda/tile/*.h)
  list(APPEND device_sources ${tile_headers})
  set(device_files ${device_sources})
  list(TRANSFORM device_files PREPEND ${PROJECT_SOURCE_DIR}/src/)
  list(TRANSFORM device_files REPLACE /src/graphrun/ /include/graphrun/)
  list(JOIN device_sources " " device_names)
  set(device_sources_file ${CMAKE_BINARY_DIR}/generated/device_sources.cpp)
  add_custom_command(OUTPUT ${device_sources_file} VERBATIM
    COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DHEADERS=${device_names} -DOUTPUT=${device_sources_file}
            -P ${PROJECT_SOURCE_DIR}/cmake/DeviceSources.cmake
    DEPENDS ${device_files} ${PROJECT_SOURCE_DIR}/cmake/DeviceSources.cmake)
  # A library of its own, so that tests may link it too.
  add_library(graphrun_device_sources OBJECT ${device_sources_file})
  target_include_directories(graphrun_device_sources PRIVATE ${CMAKE_BINARY_DIR}/layers/executor_cuda)
  target_link_libraries(graphrun_device_sources PRIVATE graphrun_flags graphrun_hardening)
  # For --profile. The library itself is opened at run time, where it is installed.
  find_path(GRAPHRUN_CUPTI_INCLUDE cupti.h
    HINTS ${CUDAToolkit_INCLUDE_DIRS} ${CUDAToolkit_LIBRARY_ROOT}/extras/CUPTI/include)
  mark_as_advanced(GRAPHRUN_CUPTI_INCLUDE)
  if(GRAPHRUN_CUPTI_INCLUDE)
    set_source_files_properties(${PROJECT_SOURCE_DIR}/src/executors/cuda/profile_cupti.cpp
      TARGET_DIRECTORY graphrun_executor_cuda PROPERTIES
      COMPILE_DEFINITIONS GRAPHRUN_HAS_CUPTI=1 INCLUDE_DIRECTORIES ${GRAPHRUN_CUPTI_INCLUDE})
  else()
    message(STATUS "CUDA: cupti.h was not found, --profile will go by events and our own clock")
  endif()

  # Device code has flags of its own: no contraction to fma that was not written, our warnings where nvcc passes them on.
  file(GLOB cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/kernels/cuda/*.cu)
  add_library(graphrun_device_code OBJECT ${cuda_sources})
  target_include_directories(graphrun_device_code PRIVATE
    ${PROJECT_SOURCE_DIR}/include ${CMAKE_BINARY_DIR}/layers/kernels ${CMAKE_BINARY_DIR}/layers/base)
  target_compile_options(graphrun_device_code PRIVATE ${cuda_standard} --fmad=false -Xcompiler=-Wall,-Wextra,-Wshadow,-ffp-contract=off)
  # nvcc names what is local to a file after the whole path of it: told another one, it writes the same in every folder.
  include(CheckCompilerFlag)
  check_compiler_flag(CUDA -Xcudafe=--orig_src_path_name=a.cu GRAPHRUN_CUDA_SOURCE_PATH)
  if(GRAPHRUN_CUDA_SOURCE_PATH)
    foreach(source ${cuda_sources})
      file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${source})
      set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS -Xcudafe=--orig_src_path_name=${name})
    endforeach()
  endif()
  if(GRAPHRUN_WERROR)
    target_compile_options(graphrun_device_code PRIVATE -Werror=all-warnings)
  endif()
  set_target_properties(graphrun_device_code PROPERTIES
    CUDA_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON POSITION_INDEPENDENT_CODE ON)

  add_library(graphrun_cuda MODULE
    $<TARGET_OBJECTS:graphrun_kernels_cuda> $<TARGET_OBJECTS:graphrun_executor_cuda> $<TARGET_OBJECTS:graphrun_device_code>
    $<TARGET_OBJECTS:graphrun_device_sources> $<TARGET_OBJECTS:graphrun_executor_cuda_planner>)
  target_link_libraries(graphrun_cuda PRIVATE graphrun graphrun_flags graphrun_hardening graphrun_fmt CUDA::cudart_static ${CMAKE_DL_LIBS})
  set(cuda_exports ${PROJECT_SOURCE_DIR}/cmake/graphrun.map)
  target_link_options(graphrun_cuda PRIVATE LINKER:--version-script=${cuda_exports} LINKER:--exclude-libs,ALL)
  # The toolkit's folder is where cuBLASLt is opened from when a model has wide products. One path for both trees: see
  # graphrun_cli.
  set_target_properties(graphrun_cuda PROPERTIES
    LINK_DEPENDS ${cuda_exports} LINKER_LANGUAGE CXX
    BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN;${CUDAToolkit_LIBRARY_DIR}")
  install(TARGETS graphrun_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT cuda)
endif()

# What `graphrun --version` says of it.
set(cuda_build "not built")
if(GRAPHRUN_CUDA_FOUND)
  list(JOIN CMAKE_CUDA_ARCHITECTURES " " cuda_architectures)
  set(cuda_build "${CMAKE_CUDA_COMPILER_VERSION}, architectures ${cuda_architectures}")
endif()
target_compile_definitions(graphrun_cli_parts PRIVATE GRAPHRUN_CUDA_BUILD="${cuda_build}")
