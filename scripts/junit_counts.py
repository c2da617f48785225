#!/usr/bin/env python3
"""junit_counts.py FILE: prints the number of tests, failed tests and skipped tests in a JUnit file that CTest wrote."""

import sys
import xml.etree.ElementTree as ElementTree


def main():
    suite = ElementTree.parse(sys.argv[1]).getroot()
    skipped = sum(case.get("status") == "notrun" for case in suite.iter("testcase"))
    print(suite.get("tests"), suite.get("failures"), skipped)


if __name__ == "__main__":
    main()
