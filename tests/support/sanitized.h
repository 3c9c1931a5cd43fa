// sanitized.h: whether this build has a sanitizer, which changes time and memory use.
// Contract: a constant; GRAPHRUN_SANITIZED (cmake/Layers.cmake) is the same for the preprocessor.
#pragma once

namespace graphrun::test {

#ifdef GRAPHRUN_SANITIZED
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace graphrun::test
