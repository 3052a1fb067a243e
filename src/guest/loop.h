/* loop.h - the guest's second thread. */
#ifndef AB_GUEST_LOOP_H
#define AB_GUEST_LOOP_H

#include "guest/guest.h"

/* Ends the process when the stream ends. */
AB_NORETURN void ab_guest_loop(struct guest *g);

#endif
