"""``python -m benchmarks``: every figure, one after the other, each in its own process."""

import subprocess
import sys

SCRIPTS = [
    "fashion_fit", "fashion_predict", "text_fit", "binary_epoch", "memory", "icd_accuracy",
    "fma_peak", "threads", "few_classes", "approximation", "layout", "scaling",
    "kernel_fit", "linear", "drop_in", "certificate_cost", "kernel_predict", "clustering",
    "kernel_whole", "kernel_grid",
    "kernel_rows", "kernel_threads", "parse", "command_line", "startup", "model_load", "easy",
    "autosvc", "census", "out_of_core", "cluster", "dask_workers", "kills", "kernel_memory",
    "growth", "eight_million", "dyadic", "additive_defaults", "kernel_defaults", "many_classes",
    "parts", "primal", "approximate_gradient", "few_rows", "fewer_visits", "adaptive_clustering",
    "regression_additive",
    "working_sets", "scene15", "regression", "one_class",
]  # fmt: skip

if __name__ == "__main__":
    for script in SCRIPTS:
        print(f"== {script}", flush=True)
        subprocess.run([sys.executable, "-m", f"benchmarks.{script}"], check=True)
