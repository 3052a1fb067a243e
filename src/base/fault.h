/* fault.h - named failure points, for tests.
 *
 *     if ((errnum = AB_FAULT("fs.fsync")) != 0 || fsync(fd) < 0) ...
 *
 * AB_FAULT evaluates to the errno armed for that point, or 0. Points are armed by the
 * environment variable AGENTBOX_FAULTS, a comma-separated list of NAME:NTH:ERRNO (the NTH
 * time the point is passed, from 1; 0 means every time; ERRNO is a number, or "kill": the
 * process is gone at once, as by kill -9), or by ab_fault_arm. Without AB_FAULTS the
 * macro is the constant 0 and nothing is compiled in.
 */
#ifndef AB_BASE_FAULT_H
#define AB_BASE_FAULT_H

#include "base/ab.h"

#ifdef AB_FAULTS
#    define AB_FAULT(name) ab_fault_hit(name)
#else
#    define AB_FAULT(name) 0
#endif

/* Counts one pass of the point; its errno, or 0. */
int ab_fault_hit(const char *name);

/* Replaces the armed points; NULL disarms all. Returns -1 when the text is not well
 * formed. */
int ab_fault_arm(const char *spec);

#endif
