"""The exact run: the printed C in a prime field, against the statements as lowered, bit by bit.

    field.py             floats as elements of a prime field, in NumPy
    print_reference.py   a scop as naive C, statement by statement: what the model means
    build.py             both as libraries: the printed kernels and driver, and the reference
    sizes.py             which sizes, and what is fed
    run.py               runs and compares

In the field addition and multiplication are exact, so what the compiler may reorder (sums, the
transforms of fast convolutions, factors) gives the same element, and exp, tanh and all other
functions are pseudo-random; a lost instance, a wrong index or a swapped argument changes the result
but for one case in the size of the field (Schwartz 1980, Zippel 1979). So a comparison needs no
tolerance, and one run with random inputs stands for all inputs. What it cannot see are races, which
the proof excludes, and the floating-point functions of `runtime/`, which have tests of their own.
"""
