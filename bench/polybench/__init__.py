"""PolyBench/C 4.2.1: its 30 kernels as `@polyc.kernel`, and a race with C compilers.

python -m bench.polybench --threads 1 --kernel gemm --kernel lu
"""
