#pragma once

// One copy of a function for processors with AVX2 and FMA, chosen when the program starts.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define ADJOIN_WIDE __attribute__((target_clones("arch=haswell", "default")))
#else
#define ADJOIN_WIDE
#endif

/// For what a function with copies calls: compiled as part of each copy.
#define ADJOIN_INLINE inline __attribute__((always_inline))
