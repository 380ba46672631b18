"""What controllers promise: legal state transitions and handovers of leadership.

Pure modules over rows of silver. `rows` has their input and their findings. `zk_machines` has the state machines of the
ZooKeeper controller, `zk_partition` its decisions, `kraft_partition` and `broker_registration` the same for KRaft.
`failover` follows a leadership from one broker to the next.

**Lines may be missing.** A finding is shown by one line alone, or by two lines that contradict each other whatever was
logged between them. Two lines of a partition contradict each other only within one incarnation of its topic, since a
topic that is deleted and created again restarts at epoch 0. A case that needs the missing lines is a *gap* or a
*suspect*, and never a finding.

Imports the rooms up to `rules`. Begin to read with `stage` and `partition_work`.
"""
