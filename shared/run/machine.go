package run

// Machine identifies the machine of an attempt: the runner that made it, where it
// is, and its id there. The zero value is an unknown machine.
type Machine struct {
	// Runner is the kind of the runner, such as "fly". It calls the runner.
	Runner string `json:"runner"`
	// Pool is the pool whose slot the attempt had at the launch.
	Pool string `json:"pool,omitempty"`
	// App, Region and Cluster say where the machine is. A runner uses those that
	// its platform has.
	App     string `json:"app,omitempty"`
	Region  string `json:"region,omitempty"`
	Cluster string `json:"cluster,omitempty"`
	// ID is the platform's own id, which clients see.
	ID string `json:"id"`
	// Version is the version of a warm machine by its platform; empty for another one. Its
	// start is conditional on it. That of an attempt's machine is empty unless the machine
	// may run another attempt later: it identifies the start.
	Version string `json:"version,omitempty"`
}

// Known reports whether the machine is known.
func (m Machine) Known() bool { return m.ID != "" }

// Key returns the part of the machine that is the same in every view of it. It
// omits Pool, which the platform does not know, Region, which an earlier version of Sortie
// did not record, and Version, which changes.
func (m Machine) Key() Machine {
	m.Pool, m.Region, m.Version = "", "", ""
	return m
}
