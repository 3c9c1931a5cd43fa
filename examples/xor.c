/* xor.c: the exclusive or, from C99. */
#include <graphrun/c.h>
#include <stdio.h>

static const char kModel[] =
    "{\"format\": 1, \"data\": {\"train\": {\"inline\": {\"x\": [[0, 0], [0, 1], [1, 0], [1, 1]], \"y\": [0, 1, 1, "
    "0]}}},"
    " \"inputs\": {\"x\": [\"batch\", 2], \"y\": [\"batch\", 1]},"
    " \"graph\": [{\"name\": \"h\", \"op\": \"dense\", \"inputs\": [\"x\"], \"units\": 4, \"activation\": \"tanh\"},"
    "             {\"name\": \"y_hat\", \"op\": \"dense\", \"inputs\": [\"h\"], \"units\": 1},"
    "             \"loss = mean(square(y_hat - y))\"],"
    " \"outputs\": {\"y_hat\": \"y\"},"
    " \"train\": {\"minimize\": \"loss\", \"optimizer\": {\"sgd\": {\"lr\": 0.1}}, \"epochs\": 2000, \"seed\": 1}}";

int main(void) {
  gr_model* model = NULL;
  gr_session* session = NULL;
  gr_error* error = gr_model_parse(kModel, NULL, &model);
  if (error == NULL) error = gr_session_open(model, NULL, &session);
  if (error == NULL) error = gr_session_train(session, NULL, NULL);

  const float x[8] = {0, 0, 0, 1, 1, 0, 1, 1}; /* four rows */
  float y[4] = {0};
  const gr_const_bytes in = {x, sizeof x};
  const gr_bytes out = {y, sizeof y};
  if (error == NULL) error = gr_session_predict(session, &in, 1, &out, 1);
  if (error == NULL) printf("%.3f\n%.3f\n%.3f\n%.3f\n", y[0], y[1], y[2], y[3]);
  if (error != NULL) fprintf(stderr, "%s\n", gr_error_message(error));
  const int failed = error != NULL;
  gr_error_free(error);
  gr_session_free(session);
  gr_model_free(model);
  return failed;
}
