/* The program agentbox-init, inside the engine's binary. AB_INIT_FILE comes from CMakeLists.txt. */
    .section .rodata
    .globl ab_init_program, ab_init_program_end
    .balign 16
ab_init_program:
    .incbin AB_INIT_FILE
ab_init_program_end:
    .byte 0
    .section .note.GNU-stack, "", %progbits
