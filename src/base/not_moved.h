// not_moved.h: what is behind an object of the public interface that may have been moved away from.
// Contract: throws Error (kind input, code "KIND.moved") where nothing is.
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
