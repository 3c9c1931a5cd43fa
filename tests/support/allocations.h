// allocations.h: counts heap allocations of the test binary in all threads, to prove that a hot path makes none.
// Contract: linked into every test binary. Counts malloc and related functions, hence operator new; under a sanitizer,
// uses the allocator's hook. Deallocations are not counted.
#pragma once

#include <cstdint>

namespace graphrun::test {

std::uint64_t allocations();  // since the program started

}  // namespace graphrun::test
