"""The exact run: the printed C or CUDA in a prime field, against the statements as lowered.

    field.py             floats as elements of a prime field, in NumPy
    print_reference.py   a scop as naive C, statement by statement: what the model means
    compile_field.py     texts as C++ whose floats are elements
    on_cpu.py            the printed kernels and driver, in guarded memory (guarded.py)
    on_cuda.py           the same for CUDA, on the emulator
    build.py             both libraries: what is run, and the reference
    sizes.py             which sizes, and what is fed
    run.py               runs and compares, bit by bit

In the field addition and multiplication are exact, so what the compiler may reorder (sums, the
transforms of fast convolutions, factors) gives the same element, and exp, tanh and all other
functions are pseudo-random; a lost instance, a wrong index or a swapped argument changes the result
but for one case in the size of the field (Schwartz 1980, Zippel 1979). So a comparison needs no
tolerance, and one run with random inputs stands for all inputs. What it cannot see are races, which
the proof excludes, and the floating-point functions of `runtime/`, which have tests of their own.

CUDA always runs on the emulator (`runtime/polyc_emulator.hpp`), as a GPU computes with floats only.
An element goes where the bits of a float go: through short vectors, shuffles, swizzled tiles,
fragments of tensor cores and copies in the background; what these multiply and add they do in the
field. Blocks and threads take turns in another order each time, so most races show as well.
"""
