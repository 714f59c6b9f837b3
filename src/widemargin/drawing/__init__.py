"""Plots, a file per kind; `widemargin.plots` exports them."""
