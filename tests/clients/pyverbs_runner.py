# SPDX-License-Identifier: BSD-2-Clause
"""pyverbs_runner.py TESTS --dev DEVICE [...]: runs rdma-core's Python tests from the directory TESTS, as their own
run_tests.py does. Prints one line for each test: `pass|skip|fail<TAB>test<TAB>reason`. A traceback follows a failure."""
import os
import sys
import unittest
from importlib.machinery import SourceFileLoader

out = os.fdopen(os.dup(1), 'w', buffering=1)  # line-buffered: a test that forks must not print a line twice


class Result(unittest.TestResult):
    def report(self, outcome, test, reason=''):
        out.write(f'{outcome}\t{test.id()}\t{" ".join(str(reason).split())}\n')

    def addSuccess(self, test):
        self.report('pass', test)

    def addSkip(self, test, reason):
        self.report('skip', test, reason)

    def fail(self, test, error):
        self.report('fail', test, error[1])
        for line in self._exc_info_to_string(error, test).splitlines():
            out.write(f'  {line}\n')

    def addError(self, test, error):
        super().addError(test, error)
        self.fail(test, error)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.fail(test, error)

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error:
            self.fail(subtest, error)


def main():
    directory = sys.argv.pop(1)
    sys.path.insert(0, directory)
    from args_parser import parser
    tests = SourceFileLoader('tests', os.path.join(directory, '__init__.py')).load_module()
    parser.parse_args()
    loader = unittest.defaultTestLoader
    suite = loader.loadTestsFromNames(sys.argv[1:], tests) if sys.argv[1:] else loader.loadTestsFromModule(tests)
    result = Result()
    suite.run(result)
    out.write('end\t\t\n')
    return 0 if result.wasSuccessful() else 1


if __name__ == '__main__':
    sys.exit(main())
