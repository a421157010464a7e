// Package fly is the Runner on Fly Machines, through the real client.
//
// One attempt is one machine with a name of its own. Fly keeps names unique
// among live machines, and so a launch that is repeated, or whose answer was
// lost, finds its machine again: by the id in Fly's refusal of the name, or by
// the metadata that every machine carries. Machines are spread over apps by
// their names, because Fly limits creations for each app; a repeat goes to the
// same app.
//
// It promises what the Runner says. It refuses to believe a machine that does
// not carry its own cluster, tenant, run and attempt, and to take a list's
// silence, or a 404 about an app, for the end of a machine.
package fly
