/* polyc_emulator_fibers.hpp: stacks that the emulator changes between, one for each CUDA thread that
   waits for others.

   A change saves the registers that a called function must preserve, 2 ns on x86-64 and AArch64;
   elsewhere it is ucontext's, which asks the kernel. AddressSanitizer and ThreadSanitizer are told. */

#ifndef POLYC_EMULATOR_FIBERS_HPP
#define POLYC_EMULATOR_FIBERS_HPP

#include <stddef.h>
#include <string.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

/* PC_RACES: under ThreadSanitizer. It sees what kernels do, and nothing of the emulator itself:
   emulator functions that touch state of their own are PC_HIDDEN. PC_COUNT: instrumented like that,
   but its callbacks are polyc_emulator_counts.hpp's. */
#if defined __SANITIZE_THREAD__ && !defined PC_COUNT
#define PC_RACES 1
#include <sanitizer/tsan_interface.h>
#endif
#ifdef PC_RACES
/* Between these two, calls of the library are not seen either; memory allocated is without history. */
extern "C" void AnnotateIgnoreReadsBegin(const char *file, int line);
extern "C" void AnnotateIgnoreReadsEnd(const char *file, int line);
#define PC_UNSEEN_BEGIN AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
#define PC_UNSEEN_END AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
/* Around what a report should show as called by the kernel. */
extern "C" void __tsan_func_entry(void *caller);
extern "C" void __tsan_func_exit(void);
#define PC_ENTER __tsan_func_entry(__builtin_return_address(0));
#define PC_EXIT __tsan_func_exit();
#define PC_RELEASE(place) __tsan_release(place)
#define PC_ACQUIRE(place) __tsan_acquire(place)
/* Accesses of hardware that stand for those of the fiber. */
extern "C" void __tsan_read_range(void *address, unsigned long bytes);
extern "C" void __tsan_write_range(void *address, unsigned long bytes);
#define PC_NOTE_READ(place, bytes) __tsan_read_range((void *)(place), (unsigned long)(bytes))
#define PC_NOTE_WRITE(place, bytes) __tsan_write_range((void *)(place), (unsigned long)(bytes))
#else
#define PC_UNSEEN_BEGIN
#define PC_UNSEEN_END
#define PC_ENTER
#define PC_EXIT
#define PC_RELEASE(place) (void)(place)
#define PC_ACQUIRE(place) (void)(place)
#define PC_NOTE_READ(place, bytes) (void)0
#define PC_NOTE_WRITE(place, bytes) (void)0
#endif
#ifdef __SANITIZE_THREAD__
#define PC_SILENT __attribute__((no_sanitize("thread")))
#define PC_HIDDEN static __attribute__((noinline, unused, no_sanitize("thread")))
#else
#define PC_SILENT
#define PC_HIDDEN static __attribute__((unused))
#endif

/* memmove, but not seen. */
PC_HIDDEN void pc_move(void *target, const void *source, size_t bytes)
{
    PC_UNSEEN_BEGIN
    if (bytes > 0) /* or else there may be no place at all */
        memmove(target, source, bytes);
    PC_UNSEEN_END
}

struct pc_fiber {
    void *saved; /* where its registers lie on its stack (ucontext_t * for ucontext) */
    char *stack; /* its lowest byte */
    size_t size;
    void *shadow; /* what a sanitizer knows of it */
};

#if defined __x86_64__

extern "C" void pc_change_stack(void **saved, void *next) __attribute__((visibility("hidden")));
__asm__(".text\n"
        ".p2align 4\n"
        ".hidden pc_change_stack\n"
        ".type pc_change_stack, @function\n"
        "pc_change_stack:\n"
        "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n    pushq %r13\n    pushq %r14\n    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n    popq %r14\n    popq %r13\n    popq %r12\n    popq %rbx\n    popq %rbp\n"
        "    popq %rcx\n"
        "    jmp *%rcx\n" /* a return would always be mispredicted */
        ".size pc_change_stack, .-pc_change_stack\n");

/* Registers, the address to go on at, and one word that puts the stack where a call would. */
PC_HIDDEN void *pc_first_frame(char *stack, size_t size, void (*begin)(void))
{
    void **frame = (void **)(stack + size / 16 * 16) - 8;
    memset(frame, 0, 8 * sizeof(void *));
    frame[6] = (void *)begin;
    return frame;
}

#elif defined __aarch64__

extern "C" void pc_change_stack(void **saved, void *next) __attribute__((visibility("hidden")));
__asm__(".text\n"
        ".p2align 4\n"
        ".hidden pc_change_stack\n"
        ".type pc_change_stack, %function\n"
        "pc_change_stack:\n"
        "    sub sp, sp, #160\n"
        "    stp x19, x20, [sp]\n    stp x21, x22, [sp, #16]\n    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n    stp x27, x28, [sp, #64]\n    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n    stp d10, d11, [sp, #112]\n    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n    str x9, [x0]\n    mov sp, x1\n"
        "    ldp x19, x20, [sp]\n    ldp x21, x22, [sp, #16]\n    ldp x23, x24, [sp, #32]\n"
        "    ldp x25, x26, [sp, #48]\n    ldp x27, x28, [sp, #64]\n    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n    ldp d10, d11, [sp, #112]\n    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #160\n"
        "    ret\n"
        ".size pc_change_stack, .-pc_change_stack\n");

PC_HIDDEN void *pc_first_frame(char *stack, size_t size, void (*begin)(void))
{
    void **frame = (void **)(stack + size / 16 * 16) - 20;
    memset(frame, 0, 20 * sizeof(void *));
    frame[11] = (void *)begin;
    return frame;
}

#else

#include <ucontext.h>

static void pc_change_stack(void **saved, void *next)
{
    ucontext_t here;
    *saved = &here;
    swapcontext(&here, (ucontext_t *)next);
}

PC_HIDDEN void *pc_first_frame(char *stack, size_t size, void (*begin)(void))
{
    size = (size - sizeof(ucontext_t)) / 64 * 64;
    ucontext_t *context = (ucontext_t *)(stack + size);
    getcontext(context);
    context->uc_stack.ss_sp = stack;
    context->uc_stack.ss_size = size;
    makecontext(context, begin, 0);
    return context;
}

#endif

/* A fiber that will run begin(), which never returns, on memory of its own, aligned to 64 bytes. */
PC_HIDDEN void pc_prepare_fiber(pc_fiber *fiber, char *stack, size_t size, void (*begin)(void))
{
    fiber->stack = stack;
    fiber->size = size;
    fiber->saved = pc_first_frame(stack, size, begin);
    fiber->shadow = NULL;
#ifdef PC_RACES
    fiber->shadow = __tsan_create_fiber(0);
#elif defined __SANITIZE_ADDRESS__
    ASAN_UNPOISON_MEMORY_REGION(stack, size);
#endif
}

/* To be called first in begin(), with the fiber that was changed from. */
PC_HIDDEN void pc_arrive(pc_fiber *fiber, pc_fiber *previous)
{
    (void)fiber, (void)previous;
#ifdef __SANITIZE_ADDRESS__
    const void *stack;
    __sanitizer_finish_switch_fiber(fiber->shadow, &stack, &previous->size);
    previous->stack = (char *)stack;
#endif
}

/* Goes on with `next`; returns when something changes back to `fiber`, from `*previous`. */
PC_HIDDEN void pc_change_fiber(pc_fiber *fiber, pc_fiber *next, pc_fiber **previous)
{
    *previous = fiber;
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(&fiber->shadow, next->stack, next->size);
#endif
#ifdef PC_RACES
    __tsan_switch_to_fiber(next->shadow, __tsan_switch_to_fiber_no_sync);
#endif
    pc_change_stack(&fiber->saved, next->saved);
    pc_arrive(fiber, *previous);
}

#endif
