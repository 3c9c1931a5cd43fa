// not_moved.h: accesses the implementation of a public object that may have been moved from.
// Contract: throws Error (kind input, code "KIND.moved") if the object was moved from.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "graphrun/error.h"

namespace graphrun {

template <class Impl>
Impl& not_moved(const std::unique_ptr<Impl>& impl, std::string_view kind) {
  if (impl != nullptr) return *impl;
  throw Error(ErrorKind::input, std::string(kind) + ".moved", "the " + std::string(kind) + " was moved away from");
}

}  // namespace graphrun
