// Behind all other headers, which may be precompiled. Where functions, launch bounds and variables of a source are looked for, these stay.
#ifdef RESIDENT_OUTLINE
#undef __device__
#undef __global__
#undef __host__
#undef __launch_bounds__
#undef __managed__
#undef __shared__
#endif
