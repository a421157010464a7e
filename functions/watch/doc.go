// Package watch is the agent beside the pods of a Kubernetes cluster. It reports machines
// that have something new to Sortie, where no process can watch the cluster: on AWS a sweep
// would find them within a minute.
//
// The agent reports each machine that runs, cannot start, has ended or has disappeared, and
// reports it again when that changes. It reports at least once: after a restart it reports
// what it sees again. A report proves nothing; Sortie looks at the cluster itself. Without
// the agent runs end later, and not otherwise.
package watch
