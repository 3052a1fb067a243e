/* collect.h - when garbage is collected: between fibers, never inside one.
 *
 * Lua collects where memory is asked for, and runs finalizers on the stack of whoever
 * asked. In a recursion without end that is a stack with no room left: every finalizer
 * then fails, which leaks what it was to free, and each failure copies the whole stack
 * twice. So a fiber's turn only runs up a debt; it is paid when the turn is over, on the
 * main stack and on the engine's account. A turn that allocates more than
 * AB_COLLECT_DEFER_KB, or meets its ceiling, collects on the spot all the same.
 */
#ifndef AB_LUA_COLLECT_H
#define AB_LUA_COLLECT_H

#include "lua/fiber.h"

enum { AB_COLLECT_DEFER_KB = 1 << 20 };

/* Around each turn of a fiber. The second one runs finalizers: they see no current
 * fiber. */
void ab_collect_defer(struct ab_sched *s);
void ab_collect_due(struct ab_sched *s);

/* Replaces collectgarbage by one that runs finalizers in the same place. */
void abl_collect_install(lua_State *L);

#endif
