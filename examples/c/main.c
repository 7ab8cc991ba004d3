// Heat in a rod, by a kernel that picokernel printed as C: nothing of picokernel is needed to build
// this but the two printed files, and nothing at all to run it.
#include <stdio.h>

#include "heat.h"

int main(void) {
  enum { n = 9 };
  double even[n] = {100}, odd[n];
  for (int step = 0; step < 500; ++step) {
    pk_heat(even, 0.25, odd, n);
    pk_heat(odd, 0.25, even, n);
  }
  int right = 1;
  for (int i = 0; i < n; ++i) {
    const double want = 100.0 * (n - 1 - i) / (n - 1);  // what is left is a straight line
    printf("%.6f\n", even[i]);
    right = right && even[i] - want < 1e-9 && want - even[i] < 1e-9;
  }
  puts(right ? "right" : "wrong");
  return !right;
}
