# DeviceSources.cmake: the texts of headers as a table in C++, kDeviceSources (src/executors/cuda/device_sources.h).
# cmake -DROOT=<the project> -DHEADERS="a.h b.h" -DOUTPUT=<file> -P DeviceSources.cmake; headers are named as they are
# included, below include/ or src/. They may hold anything but )device", which ends the literal.
separate_arguments(headers UNIX_COMMAND "${HEADERS}")
set(rows "")
foreach(header IN LISTS headers)
  if(EXISTS "${ROOT}/include/${header}")
    file(READ "${ROOT}/include/${header}" text)
  else()
    file(READ "${ROOT}/src/${header}" text)
  endif()
  string(APPEND rows "    {\"${header}\", R\"device(${text})device\"},\n")
endforeach()
file(WRITE "${OUTPUT}"
"#include \"executors/cuda/device_sources.h\"

namespace {
constexpr graphrun::cuda::DeviceSource kTable[] = {
${rows}};
}
const std::span<const graphrun::cuda::DeviceSource> graphrun::cuda::kDeviceSources{kTable};
")
