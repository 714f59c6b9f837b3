"""Pictures, a file per kind: `widemargin.plots` has their names."""
