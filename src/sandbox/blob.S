/* The programs agentbox-init and agentbox-guest, inside the engine's binary. AB_INIT_FILE and AB_GUEST_FILE come from CMakeLists.txt. */
    .section .rodata
    .globl ab_init_program, ab_init_program_end
    .balign 16
ab_init_program:
    .incbin AB_INIT_FILE
ab_init_program_end:
    .byte 0
    .globl ab_guest_program, ab_guest_program_end
    .balign 16
ab_guest_program:
    .incbin AB_GUEST_FILE
ab_guest_program_end:
    .byte 0
    .section .note.GNU-stack, "", %progbits
