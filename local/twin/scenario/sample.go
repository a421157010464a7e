package scenario

// Sample is a scenario with comments that can be played as it is.
const Sample = `# A scenario: what would these jobs do in a month? "sortie twin run" plays it in seconds,
# by the code of a real server; only machines, their programs and clients are drawn.

# A date in UTC, or a time of RFC 3339, and the days to play, 1 to 92.
start: "2027-03-01"
days: 31
# The same seed draws the same. --seed N overrides it.
seed: 1

# From the creation of a machine until its program runs.
startTime: 3s

limits:
  # Machines at once; 0 is no limit. Compare: --set limits.machines=20
  machines: 10
  # The pace of starts, and how many may start at once after a pause. Without it, no limit.
  # startsPerSecond: 1
  # burst: 10

jobs:
  # A job: its definition, or a job file beside this one (file: nightly-report.yaml).
  - job:
      id: nightly-report
      image: registry.example.org/report:1
      schedule: 30 2 * * *
      timeZone: Europe/Berlin # 02:30 does not exist on 2027-03-28
      retryConfig: {maxRetries: 2, initialDelay: 30s}
      constraints: {maxConcurrentRuns: 1, maxAllowedRunTime: 6h}
    # How long a program runs: {fixed: 10m}, or half of the runs and 95 % of the runs.
    duration: {median: 20m, p95: 1h}
    # The share of attempts that exit with a code, and of those whose machine is lost.
    fails: {share: 0.05, code: 1}
    lost: 0.01

  - job:
      id: summary
      image: registry.example.org/summary:1
      after: [nightly-report]
    duration: {fixed: 5m}

  - job:
      id: import
      image: registry.example.org/import:1
      resources: {cpus: 2, memoryMB: 1024}
    duration: {median: 4m, p95: 15m}
    # Runs on request, at random times: a number for a minute, hour or day.
    arrivals: 4/hour

# What goes wrong. Times are of RFC 3339; without them a share counts for the whole play.
faults:
  - {type: outage, at: "2027-03-10T01:25:00Z", for: 10m}
  - {type: lost_callbacks, share: 0.01}
  # - {type: throttling, at: "2027-03-12T08:00:00Z", for: 30m}
  # - {type: stopped_server, at: "2027-03-15T01:00:00Z", for: 2h}
  # - {type: clock_jump, at: "2027-03-20T00:00:00Z", for: 1h, by: 5m}

# USD for a machine second by size. A size without a price costs 0.0000005 for a CPU and
# 0.000002 for a GiB of memory, which is an assumption and no offer.
prices:
  - {cpus: 1, memoryMB: 256, perSecond: 0.000001}
`
