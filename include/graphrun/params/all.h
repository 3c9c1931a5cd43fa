// params/all.h: list of all structs that Params can contain, for code that handles every one of them.
// Contract: Params can contain a struct that is in no list, but printing or comparing it throws std::logic_error.
// To add a struct, declare it in the header of its family with kKind and describe(), and add it to the list there.
#pragma once

#include <cstddef>
#include <stdexcept>

#include "graphrun/params.h"
#include "graphrun/params/axes.h"
#include "graphrun/params/matmul.h"
#include "graphrun/params/minibatch.h"
#include "graphrun/params/movement.h"
#include "graphrun/params/random.h"
#include "graphrun/params/scalar.h"

namespace graphrun {

template <class... T>
struct ParamsList {
  static constexpr std::size_t size = sizeof...(T);
  static constexpr ParamsKind kinds[size] = {T::kKind...};  // clang 14 needs the size
  template <class F>
  static constexpr void each(F&& f) {
    (f(T{}), ...);
  }
  static Params at(std::size_t i) {
    const Params all[] = {T{}...};
    return all[i];
  }
  // Calls f with the struct that params contains. P is Params or const Params. Throws std::logic_error if no list has
  // it.
  template <class P, class F>
  static void visit(P& params, F&& f) {
    if (!((params.template get_if<T>() != nullptr && (f(params.template as<T>()), true)) || ...)) {
      throw std::logic_error("parameters that no list of params/ names");
    }
  }
};
template <class... A, class... B>
ParamsList<A..., B...> operator+(ParamsList<A...>, ParamsList<B...>);
using AllParams = decltype(ParamsList<NoParams>() + ScalarParamsList() + MatmulParamsList() + AxesParamsList() +
                           MinibatchParamsList() + MovementParamsList() + RandomParamsList());

}  // namespace graphrun
