// Package fly implements port.Runner on Fly Machines.
//
// Each attempt is one machine with a unique name. Fly keeps names unique among live machines.
// So a repeated launch, or one whose response was lost, finds its machine: by the id in Fly's
// refusal of the name, or by the metadata that every machine has. Machines are distributed over
// apps by name, because Fly limits creations per app. A repeated launch uses the same app.
//
// A machine without the right cluster, tenant, run and attempt is never adopted. A machine that
// is missing from a list, or a 404 for an app, does not prove that the machine is gone.
package fly
