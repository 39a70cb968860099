# SPDX-License-Identifier: BSD-2-Clause
"""The operations of `roci ping`, by the type of the QP: IBTA volume 1, table 37."""
OPERATIONS_ON = {
    'rc': ['send', 'send-imm', 'send-inv', 'write', 'write-imm', 'read', 'cas', 'faa', 'atomic-write', 'flush'],
    'uc': ['send', 'send-imm', 'write', 'write-imm'],
    'ud': ['send', 'send-imm'],
}
