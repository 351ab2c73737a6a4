/* The rows of the commands; see commands.h. */
#include "control/commands.h"

#define ROW(constant, word, text, ...) { .name = word, .summary = text, __VA_ARGS__ },
const struct control_command_row control_commands[] = { CONTROL_COMMANDS(ROW) };
