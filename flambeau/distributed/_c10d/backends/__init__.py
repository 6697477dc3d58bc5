"""What runs collectives: `backend` (what each of them can do) and `registry` (their names, and the
devices that they serve). `checked` refuses what every backend of the CPU refuses, and compares the
processes' calls (`agreement`). The backends are `gloo` (messages over TCP), `mpi` (over MPICH),
`fake` (one process is enough) and `wrapper`, which checks another one's calls in full."""
