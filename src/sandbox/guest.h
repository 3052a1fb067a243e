/* guest.h - the program agentbox-guest (src/guest), as it is put into containers. */
#ifndef AB_SANDBOX_GUEST_H
#define AB_SANDBOX_GUEST_H

#include "base/ab.h"

extern const uint8_t ab_guest_program[], ab_guest_program_end[];

#endif
