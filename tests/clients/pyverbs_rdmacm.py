# SPDX-License-Identifier: BSD-2-Clause
"""pyverbs_rdmacm.py ADDRESS MAC TESTS --dev DEVICE [...]: runs the rdma_cm tests as pyverbs_runner.py does. These tests look
up the device's interface and address in the kernel's sysfs; ADDRESS and MAC replace that."""
import sys

import pyverbs_runner

address, mac = sys.argv.pop(1), sys.argv.pop(1)
loader = pyverbs_runner.SourceFileLoader


class Loader(loader):
    def load_module(self, *args):
        module = super().load_module(*args)
        for name, loaded in sys.modules.items():
            if name.split('.')[-1] == 'base' and hasattr(loaded, 'RDMATestCase'):
                loaded.RDMATestCase._get_ip_mac = (
                    lambda self, dev, port, index: self.args.append([dev, port, index, address, mac]))
        return module


if __name__ == '__main__':
    pyverbs_runner.SourceFileLoader = Loader
    sys.exit(pyverbs_runner.main())
