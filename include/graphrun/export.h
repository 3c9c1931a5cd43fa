// export.h: visibility macro.
// Contract: GRAPHRUN_API marks every symbol exported by libgraphrun.so; others are hidden.
#pragma once

#define GRAPHRUN_API __attribute__((visibility("default")))
