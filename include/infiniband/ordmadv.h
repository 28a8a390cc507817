/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Direct verbs of ordma devices: what ibv_* cannot say. Link with -lordma (pkg-config libordma). Structures grow at their end: the
 * caller passes the size that it was compiled with, and comp_mask tells which optional members are valid.
 */
#ifndef ORDMADV_H
#define ORDMADV_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

/* True when the device is driven by libordma; every other call here refuses a device for which this is false. */
bool ordmadv_is_supported(struct ibv_device *device);

enum ordmadv_cap {
	ORDMADV_CAP_TOKEN = 1 << 0,	/* operations by one 8-byte store (token contexts) */
	ORDMADV_CAP_MRC = 1 << 1,	/* multipath transport */
};

enum ordmadv_device_flags {
	ORDMADV_DEVICE_SOFT = 1 << 0,	/* a soft-device: it may sleep, a doorbell may have to wake it */
	ORDMADV_DEVICE_NATIVE = 1 << 1,	/* reached by its socket (ordma run), not through the kernel */
};

struct ordmadv_device_attr {
	uint64_t comp_mask;
	uint64_t caps;			/* enum ordmadv_cap */
	uint32_t flags;			/* enum ordmadv_device_flags */
	uint32_t contract_version;	/* of device and library: major << 16 | minor */
	uint32_t max_inline_data;	/* of any QP; no verb says it */
	uint32_t reserved;
};

/* Returns 0 or an errno: EOPNOTSUPP for other devices, EINVAL when inlen is not that of any version of the structure. */
int ordmadv_query_device(struct ibv_context *context, struct ordmadv_device_attr *attr, uint32_t inlen);

#ifdef __cplusplus
}
#endif

#endif /* ORDMADV_H */
