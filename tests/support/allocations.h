// allocations.h: counts heap allocations of the test binary, in all threads: the proof that a hot path makes none.
// Contract: every test binary is linked with it. Counts malloc and its family, and so operator new; under a sanitizer
// the allocator's own hook counts. Deallocations are not counted.
#pragma once

#include <cstdint>

namespace graphrun::test {

std::uint64_t allocations();  // since the program began

}  // namespace graphrun::test
