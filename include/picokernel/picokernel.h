// All of picokernel, as namespace pk.
#pragma once

#include <picokernel/accuracy.h>
#include <picokernel/array.h>
#include <picokernel/diagnostic.h>
#include <picokernel/dtype.h>
#include <picokernel/expr.h>
#include <picokernel/kernel.h>
#include <picokernel/memory.h>
#include <picokernel/profile.h>
#include <picokernel/simt.h>
#include <picokernel/stop.h>

namespace pk = picokernel;
