"""What an injection does. One that does nothing would prove nothing, and the nemesis would not notice."""

import os
import subprocess

from sluice_lab.nemesis import injector


def test_a_zombie_reaches_kinesis_and_nothing_else_and_a_lost_pod_nothing() -> None:
    """The exceptions come before the rule: the first that matches decides."""
    rules = injector.only("10.0.0.7", "http://172.18.0.1:4567")
    assert [rule.rpartition(" ")[2] for rule in rules] == ["ACCEPT", "ACCEPT", "DROP", "DROP"]
    assert rules[0] == "-s 10.0.0.7 -d 172.18.0.1 -p tcp --dport 4567 -j ACCEPT"
    assert injector.no_dynamodb("10.0.0.7", "http://172.18.0.1:8000") == ["-s 10.0.0.7 -d 172.18.0.1 -p tcp --dport 8000 -j DROP"]
    assert injector.only("10.0.0.7") == ["-s 10.0.0.7 -j DROP", "-d 10.0.0.7 -j DROP"]


def test_a_frozen_process_is_stopped_and_continues() -> None:
    """It is found by a whole line of its environment. The shell is that of this machine."""
    line = f"SLUICE_POD_NAME=frozen-{os.getpid()}"
    key, _, name = line.partition("=")
    with subprocess.Popen(["sleep", "60"], env={key: name}) as one, subprocess.Popen(["sleep", "60"], env={key: f"{name}0"}) as other:
        try:
            for signal, status in (("STOP", os.WIFSTOPPED), ("CONT", os.WIFCONTINUED), ("KILL", os.WIFSIGNALED)):
                said = subprocess.run(["sh", "-c", injector.SIGNAL, "signal", line, signal], capture_output=True, text=True, check=True).stdout
                assert said.split() == [str(one.pid)]
                assert status(os.waitpid(one.pid, os.WUNTRACED | os.WCONTINUED)[1])
            assert other.poll() is None
        finally:
            one.returncode = -9  # it was waited for above
            other.kill()
