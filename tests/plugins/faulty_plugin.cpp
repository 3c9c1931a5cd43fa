// faulty_plugin.cpp: examples/matmul_plugin.c with one fault, which the variable PLUGIN_FAULT names: in the table that
// it gives, in what its functions say and throw, or in what it computes. What loading, verify and conformance must
// find.
#define graphrun_executor_plugin_c sample_plugin
#include "../../examples/matmul_plugin.c"
#undef graphrun_executor_plugin_c

#include <stdexcept>
#include <string>
#include <vector>

extern "C" GR_API const gr_executor* graphrun_executor_plugin_c(const gr_host* given);

namespace {

std::string fault() {
  const char* named = getenv("PLUGIN_FAULT");
  return named == nullptr ? "" : named;
}
bool is(const char* name) {
  return fault() == name;
}

// "run_fails", "run_odd", "run_silent", "run_throws", "run_throws_int": 0 when nothing of the kind is asked for.
int behave(const std::string& function, char* why) {
  const std::string wanted = fault();
  if (wanted == function + "_throws") throw std::runtime_error("out of luck");
  if (wanted == function + "_throws_int") throw 7;
  if (wanted == function + "_silent") return GR_RUN;
  if (wanted != function + "_fails" && wanted != function + "_odd") return 0;
  snprintf(why, GR_WHY, "the unit\nis on fire");
  return wanted == function + "_odd" ? 77 : GR_DEVICE;
}

int create(const char* argument, void** self, char* why) {
  if (*argument != '\0' && std::string(argument) != "fine") {
    snprintf(why, GR_WHY, "there is no unit '%s'", argument);
    return GR_INPUT;
  }
  *self = nullptr;
  return behave("create", why);
}

int faulty_supports(void* self, const gr_signature* step, const char* target, uint64_t* workspace, char* why) {
  if (is("supports_odd")) return 77;
  if (is("declines_sum") && std::string(step->op) == "sum") return GR_NO;
  behave("supports", why);
  return supports(self, step, target, workspace, why);
}

Loaded* shared = nullptr;
uint64_t shared_bytes = 0;  // of its arena: its Program may be gone

int faulty_load(void* self, const gr_program* program, gr_progress* progress, void** loaded, char* why) {
  if (const int kind = behave("load", why)) return kind;
  const int kind = load(self, program, progress, loaded, why);
  if (kind != 0 || !is("shares_its_arena")) return kind;
  // Loads of Programs of one size have one arena, which is never given back.
  auto* it = static_cast<Loaded*>(*loaded);
  if (shared == nullptr || shared_bytes != program->arena_bytes) {
    shared = new Loaded(*it);
    shared_bytes = program->arena_bytes;
    return 0;
  }
  for (size_t p = 0; p < program->phases.count; ++p) {
    for (size_t i = 0; i < it->phases[p].count; ++i) {
      Bound& step = it->phases[p].steps[i];
      step.at = gr_operands_in(shared->arena, program, GR_AT(gr_phase, program->phases, p),
                               GR_AT(gr_step, GR_AT(gr_phase, program->phases, p)->steps, i));
      if (step.kernel != nullptr) {
        host->free_kernel(step.kernel);
        step.kernel = host->find_kernel(step.signature, &step.at, why);
      }
    }
  }
  it->arena = shared->arena;
  return 0;
}
void faulty_unload(void* loaded) {
  static std::vector<void*> kept;  // what shares an arena
  if (!is("shares_its_arena")) return unload(loaded);
  kept.push_back(loaded);
}

int faulty_run_steps(void* loaded, uint32_t phase, uint32_t first, uint32_t last, char* why) {
  if (const int kind = behave("run_steps", why)) return kind;
  const Phase& of = static_cast<Loaded*>(loaded)->phases[phase];
  for (uint32_t i = first; i < last; ++i) {
    run_steps(loaded, phase, i, i + 1, why);
    if (is("wrong_sum") && std::string(of.steps[i].signature->op) == "sum")
      *static_cast<float*>(of.steps[i].at.output) += 0.25f;
  }
  return 0;
}

int faulty_run(void* loaded, uint32_t phase, uint64_t n, char* why) {
  if (const int kind = behave("run", why)) return kind;
  auto* it = static_cast<Loaded*>(loaded);
  const std::string name = GR_AT(gr_phase, it->program->phases, phase)->name;
  if (is("predicts_nothing") && name == "predict") return 0;
  if (is("forgets_steps") && n > 2) n = 2;
  if (is("allocates")) host->report_allocation("unitAlloc", 8);
  if (!is("wrong_sum")) return run(loaded, phase, n, why);
  for (uint64_t i = 0; i < n; ++i)
    faulty_run_steps(loaded, phase, 0, static_cast<uint32_t>(it->phases[phase].count), why);
  return 0;
}

int faulty_write(void* loaded, uint32_t buffer, uint64_t first, const void* from, size_t size, char* why) {
  if (const int kind = behave("write", why)) return kind;
  return write_bytes(loaded, buffer, is("writes_rows_first") ? 0 : first, from, size, why);
}
int faulty_read(void* loaded, uint32_t buffer, uint64_t first, void* to, size_t size, char* why) {
  if (const int kind = behave("read", why)) return kind;
  if (is("polls_late") && GR_AT(gr_buffer, static_cast<Loaded*>(loaded)->program->buffers, buffer)->poll != 0) {
    memset(to, 0, size);
    return 0;
  }
  return read_bytes(loaded, buffer, first, to, size, why);
}

gr_array faulty_devices(void*, char* why) {
  static const gr_device one{"faulty:0", "a unit\x1b[31m", nullptr, nullptr, 3, 1, 2};
  if (is("null_devices")) return {nullptr, 2, sizeof one};
  if (is("no_devices")) snprintf(why, GR_WHY, "no unit is plugged in");
  return {&one, is("no_devices") ? size_t{0} : size_t{1}, sizeof one};
}

}  // namespace

extern "C" GR_API const gr_executor* graphrun_executor_plugin_c(const gr_host* given) {
  static gr_executor table;
  static const char* const target_names[] = {"one_unit", "two_units", "host"};
  if (is("entry_null")) return nullptr;
  behave("entry", nullptr);
  table = *sample_plugin(given);
  table.name = "faulty";
  table.create = create;
  table.supports = faulty_supports;
  table.load = faulty_load;
  table.unload = faulty_unload;
  table.run = faulty_run;
  table.run_steps = faulty_run_steps;
  table.write = faulty_write;
  table.read = faulty_read;
  table.devices = faulty_devices;
  if (is("size_0")) table.struct_size = 0;
  if (is("size_short")) table.struct_size = offsetof(gr_executor, read);
  if (is("version_0")) table.version = 0;
  if (is("version_later")) table.version = GR_EXECUTOR_VERSION + 1;
  if (is("null_functions")) table.supports = nullptr, table.read = nullptr;
  if (is("null_name")) table.name = nullptr;
  if (is("odd_name")) table.name = "Faulty\n";
  if (is("name_of_cpu")) table.name = "cpu";
  if (is("targets") || is("target_taken")) table.targets = {target_names, is("targets") ? 2u : 3u, sizeof(char*)};
  static const char* const no_name[] = {nullptr};
  if (is("null_target")) table.targets = {no_name, 1, sizeof(char*)};
  return &table;
}
