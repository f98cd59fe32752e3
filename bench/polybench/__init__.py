"""PolyBench/C 4.2.1: its 30 kernels as `@polyc.kernel`, loops of every day, and a race with C.

python -m bench.polybench --threads 1 --kernel gemm --kernel lu
"""
