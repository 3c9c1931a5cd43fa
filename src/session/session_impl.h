// session_impl.h: the parts of a Session.
#pragma once

#include "base/not_moved.h"
#include "session/evaluator.h"
#include "session/loaded_model.h"
#include "session/predictor.h"
#include "session/trainer.h"

namespace graphrun {

struct __attribute__((visibility("hidden"))) Session::Impl {  // member of an exported class
  Impl(Model model, const SessionOptions& options)
      : loaded(std::move(model), options),
        predictor(loaded),
        evaluator(loaded, predictor),
        trainer(loaded, evaluator, options.watch) {}

  LoadedModel loaded;
  Predictor predictor;
  Evaluator evaluator;
  Trainer trainer;
};

// Returns the implementation; throws Error if the Session was moved from.
template <class Impl>
Impl& not_moved(const std::unique_ptr<Impl>& impl) {
  return not_moved(impl, "session");
}

}  // namespace graphrun
