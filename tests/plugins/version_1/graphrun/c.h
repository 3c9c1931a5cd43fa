/* What executor_plugin_c.h of version 1 took from c.h. */
#ifndef GRAPHRUN_C_H
#define GRAPHRUN_C_H
#include <stdint.h>
#define GR_API __attribute__((visibility("default")))
#define GR_MAX_RANK 8
typedef enum gr_kind { GR_RUN = 1, GR_INPUT = 2, GR_CHECK = 3, GR_DEVICE = 4 } gr_kind;
typedef enum gr_dtype { GR_F32 = 0, GR_F64 = 1, GR_I32 = 2, GR_U64 = 3, GR_BOOL = 4 } gr_dtype;
typedef struct gr_type {
  gr_dtype dtype;
  int32_t rank;
  int64_t shape[GR_MAX_RANK];
} gr_type;
#endif
