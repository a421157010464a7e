// Package watch is the agent that runs in a Kubernetes cluster. It reports changed machines to
// a Sortie that has no process to watch the cluster. On AWS a sweep would find them within a
// minute.
//
// The agent reports each machine that runs, cannot start, has ended or has disappeared, and
// reports it again when that changes. Reports are sent at least once: after a restart the agent
// reports its observations again. A report proves nothing, because Sortie reads the cluster
// itself. Without the agent, runs end later, but with the same result.
package watch
