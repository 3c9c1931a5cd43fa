/* startup.c: the least that a program on QEMU's machine mps2-an386 (Cortex-M4F) needs before main(): the vector table,
   memory copied and cleared, the FPU switched on. Output and exit code go through semihosting (newlib's rdimon). */
#include <stdint.h>

extern uint32_t data_load, data_begin, data_end, bss_begin, bss_end, stack_top;
extern void initialise_monitor_handles(void);
extern int main(void);
extern void exit(int code);

void reset(void) {
  uint32_t *from = &data_load, *to;
  for (to = &data_begin; to < &data_end;) *to++ = *from++;
  for (to = &bss_begin; to < &bss_end;) *to++ = 0;
  *(volatile uint32_t *)0xE000ED88u |= 0xFu << 20;
  __asm volatile("dsb\nisb");
  initialise_monitor_handles();
  exit(main());
}

static void fault(void) {
  exit(99);
}

__attribute__((section(".vectors"), used)) static void *const vectors[16] = {
    &stack_top, (void *)reset, (void *)fault, (void *)fault, (void *)fault, (void *)fault, (void *)fault};
