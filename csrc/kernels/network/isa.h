// Compiles the file named by NETWORK_LOOPS once for each instruction set, in namespaces `baseline`,
// `avx2` and `avx512`, for loops that are written in vectors of a given width.
// NETWORK_BEST(f)(args) calls the best one that the processor has.
//
// No include guard: each file that includes it has its own loops.
#define VECTOR_BYTES 16
#define MAX_ROWS 4
#define DOT_ROWS 2
#define DOT_COLUMNS 4
namespace network {
namespace baseline {
#include NETWORK_LOOPS
}
}  // namespace network
#undef VECTOR_BYTES
#undef MAX_ROWS
#undef DOT_ROWS
#undef DOT_COLUMNS

#if FLAMBEAU_CLONES
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
#define VECTOR_BYTES 32
#define MAX_ROWS 6
#define DOT_ROWS 3
#define DOT_COLUMNS 4
namespace network {
namespace avx2 {
#include NETWORK_LOOPS
}
}  // namespace network
#undef VECTOR_BYTES
#undef MAX_ROWS
#undef DOT_ROWS
#undef DOT_COLUMNS
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4")
#define VECTOR_BYTES 64
#define MAX_ROWS 14
#define DOT_ROWS 4
#define DOT_COLUMNS 6
namespace network {
namespace avx512 {
#include NETWORK_LOOPS
}
}  // namespace network
#undef VECTOR_BYTES
#undef MAX_ROWS
#undef DOT_ROWS
#undef DOT_COLUMNS
#pragma GCC pop_options

#define NETWORK_BEST(f) (simd_level() == 2 ? avx512::f : simd_level() == 1 ? avx2::f : baseline::f)
#else
#define NETWORK_BEST(f) baseline::f
#endif
