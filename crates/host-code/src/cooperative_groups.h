// `cooperative_groups.h` on the host: it can be included.
