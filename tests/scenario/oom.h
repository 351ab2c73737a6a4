/* Memory that runs out: calls of malloc and its like from the engine and what it uses, but not from the simulation. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The n-th allocation from now on fails, and those behind it, cnt in all. */
void oom_arm(uint64_t nth, uint64_t cnt);
void oom_disarm(void);
/* The thread's allocations until the opposite call do not belong to the run: they neither count nor fail. */
void oom_suspend(bool);
/* So many have failed. */
uint64_t oom_failed(void);
