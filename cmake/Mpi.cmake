# Mpi.cmake: libgraphrun_mpi.so, next to libgraphrun.so, for `--ranks=mpi`: built if CMake finds Open MPI or MPICH.
# MPI_CXX_COMPILER=mpicxx.mpich chooses among several.
option(GRAPHRUN_MPI "Build libgraphrun_mpi.so, if MPI is found" ${PROJECT_IS_TOP_LEVEL})
if(GRAPHRUN_MPI)
  set(MPI_CXX_SKIP_MPICXX ON)  # the C interface only
  find_package(MPI QUIET COMPONENTS CXX)
endif()
if(GRAPHRUN_MPI AND MPI_CXX_FOUND)
  message(STATUS "MPI: ${MPI_CXX_COMPILER}, ${MPI_CXX_INCLUDE_DIRS}")
  graphrun_layer(mpi FOLDER session/ranks/mpi DEPENDS session LIBRARIES MPI::MPI_CXX)
  target_compile_definitions(graphrun_mpi PRIVATE GRAPHRUN_VERSION="${PROJECT_VERSION}")
  set_target_properties(graphrun_mpi PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
  add_library(graphrun_mpi_plugin MODULE $<TARGET_OBJECTS:graphrun_mpi>)
  set_target_properties(graphrun_mpi_plugin PROPERTIES OUTPUT_NAME graphrun_mpi
    BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN")
  target_link_libraries(graphrun_mpi_plugin PRIVATE graphrun graphrun_flags graphrun_hardening graphrun_fmt MPI::MPI_CXX)
  target_link_options(graphrun_mpi_plugin PRIVATE LINKER:--as-needed)
  install(TARGETS graphrun_mpi_plugin LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT mpi)
elseif(GRAPHRUN_MPI)
  message(STATUS "MPI: not found, libgraphrun_mpi.so is not built")
endif()
