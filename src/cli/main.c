#include <stdio.h>

#include "lua/state.h"

int main(int argc, char **argv)
{
    struct ab_state state;
    struct ab_err err;
    if (ab_state_init(&state, &err) < 0) {
        fprintf(stderr, "agentbox: %s\n", err.msg);
        return 70;
    }
    int status = ab_state_main(&state, argc, argv);
    ab_state_fini(&state);
    return status;
}
