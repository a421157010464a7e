package simulation

// Known defects that the simulation tolerates until they are fixed.
const (
	tolerateShortDeadline = true
	tolerateShortOutage   = true
)
