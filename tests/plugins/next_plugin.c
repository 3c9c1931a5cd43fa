/* next_plugin.c: examples/matmul_plugin.c built against the header of a later version, which adds a field to the end of
   each struct (tests/CMakeLists.txt makes it). REDUCED: it says that the version of the host will do. */
#ifdef REDUCED
#define graphrun_executor_plugin_c sample_plugin
#endif
#include "../../examples/matmul_plugin.c"

#ifdef REDUCED
#undef graphrun_executor_plugin_c
#ifdef __cplusplus
extern "C"
#endif
    GR_API const gr_executor*
    graphrun_executor_plugin_c(const gr_host* given);
const gr_executor* graphrun_executor_plugin_c(const gr_host* given) {
  static gr_executor table;
  memcpy(&table, sample_plugin(given), sizeof table);
  if (given->version < table.version) table.version = given->version;
  return &table;
}
#endif
