// The name of the instruction set this file is compiled for.  Hot files are compiled once per
// set, each copy in a namespace of that name, and `core.cpp` calls the best one the CPU runs.
#pragma once

#ifndef WIDEMARGIN_ISA
#define WIDEMARGIN_ISA baseline
#endif

// What a loop does once per row: a call would cost as much as a short row.
#define WIDEMARGIN_INLINE inline __attribute__((always_inline))
