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
// The Runner watches its Jobs and pods with one informer for each namespace and reads
// their state from its cache. Inspect asks the API server. With Config.Poll nothing
// watches: every method asks the API server.
//
// A Job whose annotations name another run or attempt is never adopted. A namespace
// that cannot be watched is reported by List and does not hide the others.
package kubernetes
