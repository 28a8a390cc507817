// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Names of the device counters: the contract's, in lower case. */
#include "ordma_core.h"

static const char *const names[ORDMA_NUM_COUNTERS] = {
	[ORDMA_COUNTER_TX_PACKETS] = "tx_packets",
	[ORDMA_COUNTER_TX_BYTES] = "tx_bytes",
	[ORDMA_COUNTER_RX_PACKETS] = "rx_packets",
	[ORDMA_COUNTER_RX_BYTES] = "rx_bytes",
	[ORDMA_COUNTER_DUPLICATE_REQUEST] = "duplicate_request",
	[ORDMA_COUNTER_OUT_OF_SEQUENCE] = "out_of_sequence",
	[ORDMA_COUNTER_PACKET_SEQ_ERR] = "packet_seq_err",
	[ORDMA_COUNTER_IMPLIED_NAK_SEQ_ERR] = "implied_nak_seq_err",
	[ORDMA_COUNTER_RNR_NAK_RETRY_ERR] = "rnr_nak_retry_err",
	[ORDMA_COUNTER_LOCAL_ACK_TIMEOUT_ERR] = "local_ack_timeout_err",
	[ORDMA_COUNTER_OUT_OF_BUFFER] = "out_of_buffer",
	[ORDMA_COUNTER_REQ_CQE_ERROR] = "req_cqe_error",
	[ORDMA_COUNTER_REQ_CQE_FLUSH_ERROR] = "req_cqe_flush_error",
	[ORDMA_COUNTER_RESP_CQE_ERROR] = "resp_cqe_error",
	[ORDMA_COUNTER_RESP_CQE_FLUSH_ERROR] = "resp_cqe_flush_error",
	[ORDMA_COUNTER_REQ_REMOTE_ACCESS_ERRORS] = "req_remote_access_errors",
	[ORDMA_COUNTER_REQ_REMOTE_INVALID_REQUEST] = "req_remote_invalid_request",
	[ORDMA_COUNTER_RESP_REMOTE_ACCESS_ERRORS] = "resp_remote_access_errors",
	[ORDMA_COUNTER_RESP_LOCAL_LENGTH_ERROR] = "resp_local_length_error",
	[ORDMA_COUNTER_RX_ICRC_ENCAPSULATED] = "rx_icrc_encapsulated",
	[ORDMA_COUNTER_RX_WRITE_REQUESTS] = "rx_write_requests",
	[ORDMA_COUNTER_RX_READ_REQUESTS] = "rx_read_requests",
	[ORDMA_COUNTER_RX_ATOMIC_REQUESTS] = "rx_atomic_requests",
	[ORDMA_COUNTER_RETRANSMITTED_PACKETS] = "retransmitted_packets",
	[ORDMA_COUNTER_DROP_MALFORMED] = "drop_malformed",
	[ORDMA_COUNTER_DROP_NO_QP] = "drop_no_qp",
	[ORDMA_COUNTER_DROP_STATE] = "drop_state",
	[ORDMA_COUNTER_DROP_ADDRESS] = "drop_address",
	[ORDMA_COUNTER_DROP_PKEY] = "drop_pkey",
	[ORDMA_COUNTER_DROP_QKEY] = "drop_qkey",
	[ORDMA_COUNTER_DROP_OPCODE] = "drop_opcode",
	[ORDMA_COUNTER_DROP_OVERRUN] = "drop_overrun",
	[ORDMA_COUNTER_DB_WORDS] = "db_words",
	[ORDMA_COUNTER_DB_REFUSED] = "db_refused",
	[ORDMA_COUNTER_TOKEN_ACCEPTED] = "token_accepted",
	[ORDMA_COUNTER_TOKEN_REFUSED] = "token_refused",
	[ORDMA_COUNTER_CQ_OVERFLOWS] = "cq_overflows",
	[ORDMA_COUNTER_EVENTS] = "events",
	[ORDMA_COUNTER_ETH_TX] = "eth_tx",
	[ORDMA_COUNTER_ETH_RX] = "eth_rx",
	[ORDMA_COUNTER_ETH_DROP] = "eth_drop",
	[ORDMA_COUNTER_REWINDS] = "rewinds",
};

const char *ordma_counter_name(unsigned int counter)
{
	return counter < ORDMA_NUM_COUNTERS ? names[counter] : NULL;
}
