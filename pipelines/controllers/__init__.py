"""What controllers promise: legal state transitions and handovers of leadership.

Pure modules over rows of silver. `rows` has their input and their findings. `zk_machines` has the state machines of the
ZooKeeper controller, `zk_partition` its decisions, `kraft_partition` and `broker_registration` the same for KRaft.
`failover` follows a leadership from one broker to the next.

**Lines may be missing.** A finding is what one line shows by itself, or what two lines contradict whatever stood
between them; two lines of a partition only contradict each other if they speak of the same incarnation of its topic,
since a topic that is deleted and made again starts again at epoch 0. What would need the missing lines to be sure is a
*gap* or a *suspect*, and never a finding.

Imports the rooms up to `rules`. Begin to read with `stage` and `partition_work`.
"""
