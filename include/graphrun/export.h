// export.h: the one visibility macro.
// Contract: everything that libgraphrun.so gives to others is marked GRAPHRUN_API; all else stays hidden.
#pragma once

#define GRAPHRUN_API __attribute__((visibility("default")))
