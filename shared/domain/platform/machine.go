package platform

// Machine identifies the machine of an attempt: its runner, its location and its id. The zero
// value is an unknown machine.
type Machine struct {
	// Runner is the kind of the runner, such as "fly". Calls about the machine go to it.
	Runner string `json:"runner"`
	// Pool is the pool whose slot the attempt had at the launch.
	Pool string `json:"pool,omitempty"`
	// App, Region and Cluster are the location of the machine. A runner uses those that its
	// platform has.
	App     string `json:"app,omitempty"`
	Region  string `json:"region,omitempty"`
	Cluster string `json:"cluster,omitempty"`
	// ID is the platform's id. Clients see it.
	ID string `json:"id"`
	// Version is the platform's version of a warm machine; empty for other machines. A start is
	// conditional on it. For the machine of an attempt it identifies the start, and is set only
	// if the machine may run another attempt later.
	Version string `json:"version,omitempty"`
}

// Known reports whether the machine has an id.
func (m Machine) Known() bool { return m.ID != "" }

// Key returns the fields that identify the machine in every record. It omits Pool, which the
// platform does not know, Region, which an earlier version did not record, and Version, which
// changes.
func (m Machine) Key() Machine {
	m.Pool, m.Region, m.Version = "", "", ""
	return m
}
