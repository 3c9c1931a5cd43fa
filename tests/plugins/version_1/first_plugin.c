/* first_plugin.c: a plug-in of version 1, with the header of version 1 beside it. Neither file changes any more: that
   it runs is what is promised. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200112L /* posix_memalign */
#endif
#include <graphrun/executor_plugin_c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const gr_host* host;

typedef struct Bound { /* a step with its operands */
  const gr_signature* signature;
  gr_operands at;
  gr_kernel* kernel; /* the library's; null: it is ours */
} Bound;

typedef struct Phase {
  Bound* steps;
  size_t count;
} Phase;

typedef struct Loaded { /* what load() makes of a Program */
  const gr_program* program;
  gr_progress* progress;
  char* arena;
  Phase* phases;
} Loaded;

/* ---- our kernel */

static int is_ours(const gr_signature* step) {
  size_t i;
  if (strcmp(step->op, "matmul") != 0) return 0;
  for (i = 0; i < step->inputs.count; ++i) {
    const gr_tensor_type* input = GR_AT(gr_tensor_type, step->inputs, i);
    if (input->type.dtype != GR_F32 || input->type.rank != 2) return 0;
  }
  return 1;
}

/* out(m, n) = a @ b, either of them transposed where the step says so. Rows past the batch's count do not take part,
   and are zero in the result. */
static void matmul(const Bound* step) {
  const gr_tensor_type* a_type = GR_AT(gr_tensor_type, step->signature->inputs, 0);
  const gr_tensor_type* b_type = GR_AT(gr_tensor_type, step->signature->inputs, 1);
  const gr_tensor_type* out_type = step->signature->output;
  const int turn_a = gr_integer(step->signature, "transpose_a") != 0;
  const int turn_b = gr_integer(step->signature, "transpose_b") != 0;
  const int64_t a_width = a_type->type.shape[1], b_width = b_type->type.shape[1], width = out_type->type.shape[1];
  const int64_t rows = gr_rows_of(&step->at, out_type);
  const int64_t a_terms = turn_a ? gr_rows_of(&step->at, a_type) : a_width;
  const int64_t b_terms = turn_b ? b_width : gr_rows_of(&step->at, b_type);
  const int64_t terms = a_terms < b_terms ? a_terms : b_terms;
  const float* a = (const float*)step->at.inputs[0];
  const float* b = (const float*)step->at.inputs[1];
  float* out = (float*)step->at.output;
  int64_t i, j, k;
  memset(out, 0, (size_t)(out_type->type.shape[0] * width) * sizeof(float));
  for (i = 0; i < rows; ++i) {
    for (j = 0; j < width; ++j) {
      double sum = 0;
      for (k = 0; k < terms; ++k)
        sum += (double)(turn_a ? a[k * a_width + i] : a[i * a_width + k]) *
               (double)(turn_b ? b[j * b_width + k] : b[k * b_width + j]);
      out[i * width + j] = (float)sum;
    }
  }
}

/* ---- the executor */

static int supports(void* self, const gr_signature* step, const char* target, uint64_t* workspace_bytes, char* why) {
  (void)self, (void)target, (void)workspace_bytes, (void)why;
  return is_ours(step) ? GR_YES : GR_FALLBACK;
}

static void unload(void* loaded) {
  Loaded* it = (Loaded*)loaded;
  size_t p, i;
  for (p = 0; it->phases != NULL && p < it->program->phases.count; ++p) {
    for (i = 0; i < it->phases[p].count; ++i) host->free_kernel(it->phases[p].steps[i].kernel);
    free(it->phases[p].steps);
  }
  free(it->phases);
  free(it->arena);
  free(it);
}

static int failed(Loaded* it, int kind, char* why, const char* what) {
  if (*why == '\0') snprintf(why, GR_WHY, "%s", what);
  unload(it);
  return kind;
}

static int load(void* self, const gr_program* program, gr_progress* progress, void** loaded, char* why) {
  Loaded* it = (Loaded*)calloc(1, sizeof(Loaded));
  void* arena = NULL;
  size_t p, i;
  (void)self;
  if (it == NULL) return GR_DEVICE;
  it->program = program;
  it->progress = progress;
  if (posix_memalign(&arena, 256, (size_t)program->arena_bytes + 1) != 0)
    return failed(it, GR_DEVICE, why, "no memory for the arena");
  it->arena = (char*)memset(arena, 0, (size_t)program->arena_bytes + 1);
  for (i = 0; i < program->initial.count; ++i) {
    const gr_initial* value = GR_AT(gr_initial, program->initial, i);
    memcpy(it->arena + GR_AT(gr_buffer, program->buffers, value->buffer)->offset, value->bytes, value->size);
  }
  it->phases = (Phase*)calloc(program->phases.count + 1, sizeof(Phase));
  if (it->phases == NULL) return failed(it, GR_DEVICE, why, "no memory");
  for (p = 0; p < program->phases.count; ++p) {
    const gr_phase* phase = GR_AT(gr_phase, program->phases, p);
    it->phases[p].steps = (Bound*)calloc(phase->steps.count + 1, sizeof(Bound));
    if (it->phases[p].steps == NULL) return failed(it, GR_DEVICE, why, "no memory");
    for (i = 0; i < phase->steps.count; ++i) {
      const gr_step* step = GR_AT(gr_step, phase->steps, i);
      Bound* bound = &it->phases[p].steps[i];
      it->phases[p].count = i + 1;
      bound->signature = step->signature;
      bound->at = gr_operands_in(it->arena, program, phase, step);
      if (is_ours(step->signature)) continue;
      bound->kernel = host->find_kernel(step->signature, &bound->at, why);
      if (bound->kernel == NULL) return failed(it, GR_INPUT, why, step->name);
    }
  }
  *loaded = it;
  return 0;
}

static int run_steps(void* loaded, uint32_t phase, uint32_t first, uint32_t last, char* why) {
  const Phase* of = &((Loaded*)loaded)->phases[phase];
  (void)why;
  for (; first < last; ++first) {
    if (of->steps[first].kernel != NULL)
      host->run_kernel(of->steps[first].kernel);
    else
      matmul(&of->steps[first]);
  }
  return 0;
}

static int run(void* loaded, uint32_t phase, uint64_t n, char* why) {
  Loaded* it = (Loaded*)loaded;
  uint64_t i;
  for (i = 0; i < n; ++i) {
    host->begin_step(it->progress, i);
    run_steps(loaded, phase, 0, (uint32_t)it->phases[phase].count, why);
  }
  return 0;
}

static char* at(Loaded* it, uint32_t buffer, uint64_t first) {
  return it->arena + GR_AT(gr_buffer, it->program->buffers, buffer)->offset + first;
}
static int write_bytes(void* loaded, uint32_t buffer, uint64_t first, const void* from, size_t size, char* why) {
  (void)why;
  memcpy(at((Loaded*)loaded, buffer, first), from, size);
  return 0;
}
static int read_bytes(void* loaded, uint32_t buffer, uint64_t first, void* to, size_t size, char* why) {
  (void)why;
  memcpy(to, at((Loaded*)loaded, buffer, first), size);
  return 0;
}

const gr_executor* graphrun_executor_plugin_c(const gr_host* given) {
  static gr_executor table;
  host = given;
  table.struct_size = sizeof table;
  table.version = GR_EXECUTOR_VERSION;
  table.name = "matmul_plugin";
  table.supports = supports;
  table.load = load;
  table.unload = unload;
  table.run = run;
  table.run_steps = run_steps;
  table.write = write_bytes;
  table.read = read_bytes;
  return &table;
}
