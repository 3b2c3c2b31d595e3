// SPDX-License-Identifier: Apache-2.0
/* What this library was built from: the build writes a digest of all sources and templates
 * (cmake/fingerprint.cmake). Builds of the same sources have the same, whatever the compiler, the folder and
 * the day. */
#ifndef CBGEN_BASE_FINGERPRINT_H
#define CBGEN_BASE_FINGERPRINT_H

extern const char cb_build_fingerprint[]; /* 64 hexadecimal digits */

#endif
