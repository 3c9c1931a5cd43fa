/* Trains a model of a text through the installed C interface, writes a row, predicts; as strict C99. */
#include <graphrun/c.h>
#include <stdio.h>
#include <string.h>

static const char* const model_text =
    "{\"format\": 1, \"name\": \"plane\","
    " \"data\": {\"train\": {\"inline\": {\"x\": [[0, 0], [0, 1], [1, 0], [1, 1]], \"y\": [0.5, -2.5, 2.5, -0.5]}}},"
    " \"inputs\": {\"x\": [\"batch\", 2], \"y\": [\"batch\", 1]},"
    " \"parameters\": {\"W\": {\"shape\": [2, 1], \"init\": \"zeros\"}, \"b\": {\"shape\": [1], \"init\": \"zeros\"}},"
    " \"graph\": [\"p = x @ W + b\", \"loss = mean(square(p - y))\"], \"outputs\": {\"p\": \"y\"},"
    " \"train\": {\"minimize\": \"loss\", \"optimizer\": {\"sgd\": {\"lr\": 0.1}}, \"epochs\": 200, \"seed\": 1}}";

static int failed(gr_error* error) {
  if (error == NULL) return 0;
  fprintf(stderr, "%s\n", gr_error_message(error));
  gr_error_free(error);
  return 1;
}

static int run(gr_session* session) {
  const float x[2] = {1, 0};
  float p = 0, w[2] = {0, 0};
  gr_const_bytes in;
  gr_bytes out;
  gr_value weights;
  gr_train_result result;
  in.data = x;
  in.size = sizeof x;
  out.data = &p;
  out.size = sizeof p;
  memset(&result, 0, sizeof result);
  result.struct_size = sizeof result;
  if (failed(gr_session_train(session, NULL, &result))) return 1;
  if (failed(gr_session_predict(session, &in, 1, &out, 1))) return 1;
  if (failed(gr_session_find(session, "W", &weights))) return 1;
  if (failed(gr_session_read(session, weights, w, sizeof w))) return 1;
  printf("%lu steps; W: %.3f %.3f; p(1, 0) = %.3f\n", (unsigned long)result.steps, w[0], w[1], p);
  return p > 2.4f && p < 2.6f ? 0 : 1;
}

int main(void) {
  gr_model* model = NULL;
  gr_session* session = NULL;
  int code = 1;
  if (gr_abi_version() < GR_ABI_VERSION) return 1;
  if (!failed(gr_model_parse(model_text, NULL, &model)) && !failed(gr_session_open(model, NULL, &session)))
    code = run(session);
  gr_session_free(session);
  gr_model_free(model);
  return code;
}
