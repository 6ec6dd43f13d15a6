/* Stands before the MPI library, says that it can use device memory, and breaks the test of that as
   TESTED_LIBRARY says. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int MPIX_Query_cuda_support(void) { return 1; }

static int breaks(const char *how) {
  const char *wanted = getenv("TESTED_LIBRARY");
  return getenv("RESIDENT_MPI_SELF_TEST") && wanted && !strcmp(wanted, how);
}

int MPI_Start(void *request) {
  if (breaks("crash")) raise(SIGSEGV);
  if (breaks("hang")) for (;;) pause();
  if (breaks("error")) return 15;
  if (breaks("exit")) _exit(0);
  int (*start)(void *) = (int (*)(void *))dlsym(RTLD_NEXT, "MPI_Start");
  return start(request);
}

/* Datatypes and communicators are of the length of an int or of a pointer. */
int MPI_Recv_init(void *memory, int count, long datatype, int source, int tag, long communicator,
                  void *request) {
  static char elsewhere[1 << 23];
  int (*init)(void *, int, long, int, int, long, void *) =
      (int (*)(void *, int, long, int, int, long, void *))dlsym(RTLD_NEXT, "MPI_Recv_init");
  if (breaks("contents") && count > 512) memory = elsewhere;
  return init(memory, count, datatype, source, tag, communicator, request);
}
