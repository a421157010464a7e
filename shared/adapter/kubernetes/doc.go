// Package kubernetes implements port.Runner with Kubernetes Jobs.
//
// Each attempt is one Job with one pod that is never restarted. The name of the Job
// makes a launch idempotent. The environment of the worker, with its token, is in a
// Secret that the Job owns.
//
// The result of an attempt is the status of its pod, not of its Job: a Job reports
// neither exit codes nor images that cannot be pulled. Pods have the finalizer
// "sortie/outcome", so the cluster keeps their status until the Runner has removed it.
// Destroy ends the pod and marks the Job. A Job that has been gone for a while is
// deleted by List, with its pod and its Secret.
//
// The Runner watches its Jobs and pods with one informer for each namespace and reads their
// state from its cache. Inspect reads from the API server. With Config.Poll there is no watch:
// every method reads from the API server.
//
// A Job whose annotations name another run or attempt is never adopted. List reports a
// namespace that cannot be watched, and still lists the others.
package kubernetes
