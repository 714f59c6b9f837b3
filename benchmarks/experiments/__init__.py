"""The papers' tables and figures as files, and one runner: ``python -m benchmarks.experiments``."""
